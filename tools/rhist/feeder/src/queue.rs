// SPDX-License-Identifier: MIT OR Apache-2.0

//! The order in which children are started.

use std::collections::VecDeque;

use crate::compilation::Job;

/// A child that is to be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Of the object.
    pub number: u32,
    /// Rules or names.
    pub job: Job,
    /// Whether it has made way for others before. At most one of these runs.
    pub is_slow: bool,
    /// Whether the file was not readable when it was seen first: to try it asks hits to hold it.
    pub is_ask: bool,
}

impl Task {
    /// A task of a readable file that has not been tried.
    pub fn new(number: u32, job: Job) -> Self {
        Self {
            number,
            job,
            is_slow: false,
            is_ask: false,
        }
    }
}

/// Tasks for one job.
#[derive(Debug, Default)]
struct Lane {
    fresh: VecDeque<u32>,
    slow: VecDeque<u32>,
}

/// Tasks that wait. Rules come before names, so that names delay no stack, but not while rules are
/// being made: files are readable for some seconds only. Files that are not readable come last:
/// there may be thousands, of programs that have ended long ago.
#[derive(Debug, Default)]
pub struct Queue {
    rules: Lane,
    names: Lane,
    asks: VecDeque<(u32, Job)>,
}

impl Queue {
    /// Appends a task.
    pub fn push(&mut self, task: Task) {
        if task.is_ask {
            self.asks.push_back((task.number, task.job));
            return;
        }
        let lane = match task.job {
            Job::Rules => &mut self.rules,
            Job::Names => &mut self.names,
        };
        let numbers = match task.is_slow {
            true => &mut lane.slow,
            false => &mut lane.fresh,
        };
        numbers.push_back(task.number);
    }

    /// Takes the next task, of these that run; not a slow one if one of these runs.
    pub fn pop(&mut self, running: impl Iterator<Item = Task> + Clone) -> Option<Task> {
        let has_slow = running.clone().any(|task| task.is_slow);
        let has_rules = running.clone().any(|task| task.job == Job::Rules);
        let mut lanes = [(Job::Rules, &mut self.rules), (Job::Names, &mut self.names)];
        if has_rules {
            lanes.reverse();
        }
        let found = lanes.into_iter().find_map(|(job, lane)| {
            let task = |is_slow| {
                move |number| Task {
                    is_slow,
                    ..Task::new(number, job)
                }
            };
            let fresh = lane.fresh.pop_front().map(task(false));
            fresh.or_else(|| (!has_slow).then(|| lane.slow.pop_front().map(task(true)))?)
        });
        let ask = |(number, job)| Task {
            is_ask: true,
            ..Task::new(number, job)
        };
        found.or_else(|| self.asks.pop_front().map(ask))
    }

    /// Moves the task of a file that was not readable to the other ones.
    pub fn hurry(&mut self, number: u32) {
        if let Some(at) = self.asks.iter().position(|(asked, _)| *asked == number)
            && let Some((number, job)) = self.asks.remove(at)
        {
            self.push(Task::new(number, job));
        }
    }

    /// Leaves out the tasks of other objects.
    pub fn retain(&mut self, is_kept: impl Fn(u32) -> bool) {
        for lane in [&mut self.rules, &mut self.names] {
            lane.fresh.retain(|number| is_kept(*number));
            lane.slow.retain(|number| is_kept(*number));
        }
        self.asks.retain(|(number, _)| is_kept(*number));
    }

    /// Whether it lacks readable files that have not been tried.
    pub fn is_tried(&self) -> bool {
        self.rules.fresh.is_empty() && self.names.fresh.is_empty()
    }

    /// Whether it lacks readable files.
    pub fn is_read(&self) -> bool {
        self.is_tried() && self.rules.slow.is_empty() && self.names.slow.is_empty()
    }

    /// Whether it lacks tasks.
    pub fn is_empty(&self) -> bool {
        self.is_read() && self.asks.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(number: u32, job: Job, is_slow: bool, is_ask: bool) -> Task {
        Task {
            number,
            job,
            is_slow,
            is_ask,
        }
    }

    #[test]
    fn rules_come_first_and_slow_ones_last() {
        let mut queue = Queue::default();
        assert!(queue.is_empty());
        let tasks = [
            task(1, Job::Names, true, false),
            task(2, Job::Names, false, false),
            task(3, Job::Rules, true, false),
            task(4, Job::Rules, false, false),
            task(5, Job::Rules, false, false),
            task(6, Job::Rules, false, false),
        ];
        tasks.iter().for_each(|task| queue.push(*task));
        queue.retain(|number| number != 5);
        let slow = [task(9, Job::Names, true, false)];
        let with_slow = |queue: &mut Queue| queue.pop(slow.iter().copied());
        let alone = |queue: &mut Queue| queue.pop([].iter().copied());
        assert_eq!(with_slow(&mut queue), Some(tasks[3]));
        assert_eq!(with_slow(&mut queue), Some(tasks[5]));
        // Slow rules come before names, but only one slow task runs.
        assert!(!queue.is_tried());
        assert_eq!(with_slow(&mut queue), Some(tasks[1]));
        assert_eq!(with_slow(&mut queue), None);
        assert!(queue.is_tried() && !queue.is_empty());
        assert_eq!(alone(&mut queue), Some(tasks[2]));
        assert_eq!(alone(&mut queue), Some(tasks[0]));
        assert!(queue.is_empty());
    }

    #[test]
    fn names_are_made_beside_rules() {
        let mut queue = Queue::default();
        let rules = [task(1, Job::Rules, false, false), task(2, Job::Rules, false, false)];
        let names = task(3, Job::Names, false, false);
        queue.push(rules[0]);
        queue.push(rules[1]);
        queue.push(names);
        assert_eq!(queue.pop([].iter().copied()), Some(rules[0]));
        assert_eq!(queue.pop([rules[0]].iter().copied()), Some(names));
        assert_eq!(queue.pop([names].iter().copied()), Some(rules[1]));
    }

    #[test]
    fn files_that_are_not_readable_come_last() {
        let mut queue = Queue::default();
        let asks = [
            task(1, Job::Rules, false, true),
            task(2, Job::Names, false, true),
            task(3, Job::Rules, false, true),
        ];
        asks.iter().for_each(|task| queue.push(*task));
        assert!(queue.is_read() && queue.is_tried() && !queue.is_empty());
        let names = task(4, Job::Names, false, false);
        queue.push(names);
        queue.hurry(3);
        queue.hurry(4);
        let pop = |queue: &mut Queue| queue.pop([].iter().copied());
        assert_eq!(pop(&mut queue), Some(task(3, Job::Rules, false, false)));
        assert_eq!(pop(&mut queue), Some(names));
        queue.retain(|number| number != 1);
        assert_eq!(pop(&mut queue), Some(asks[1]));
        assert!(queue.is_empty());
    }
}
