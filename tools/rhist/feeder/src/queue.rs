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
}

/// Tasks for one job.
#[derive(Debug, Default)]
struct Lane {
    fresh: VecDeque<u32>,
    slow: VecDeque<u32>,
}

/// Tasks that wait. Rules come before names, so that names delay no stack.
#[derive(Debug, Default)]
pub struct Queue {
    rules: Lane,
    names: Lane,
}

impl Queue {
    /// Appends a task.
    pub fn push(&mut self, task: Task) {
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

    /// Takes the next task; not a slow one if one of these runs.
    pub fn pop(&mut self, has_slow: bool) -> Option<Task> {
        let lanes = [(Job::Rules, &mut self.rules), (Job::Names, &mut self.names)];
        lanes.into_iter().find_map(|(job, lane)| {
            let task = |is_slow| move |number| Task { number, job, is_slow };
            let fresh = lane.fresh.pop_front().map(task(false));
            fresh.or_else(|| (!has_slow).then(|| lane.slow.pop_front().map(task(true)))?)
        })
    }

    /// Leaves out the tasks of other objects.
    pub fn retain(&mut self, is_kept: impl Fn(u32) -> bool) {
        for lane in [&mut self.rules, &mut self.names] {
            lane.fresh.retain(|number| is_kept(*number));
            lane.slow.retain(|number| is_kept(*number));
        }
    }

    /// Whether it lacks tasks that have not been tried.
    pub fn is_tried(&self) -> bool {
        self.rules.fresh.is_empty() && self.names.fresh.is_empty()
    }

    /// Whether it lacks tasks.
    pub fn is_empty(&self) -> bool {
        self.is_tried() && self.rules.slow.is_empty() && self.names.slow.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_come_first_and_slow_ones_last() {
        let mut queue = Queue::default();
        assert!(queue.is_empty());
        let task = |number, job, is_slow| Task { number, job, is_slow };
        let tasks = [
            task(1, Job::Names, true),
            task(2, Job::Names, false),
            task(3, Job::Rules, true),
            task(4, Job::Rules, false),
            task(5, Job::Rules, false),
            task(6, Job::Rules, false),
        ];
        tasks.iter().for_each(|task| queue.push(*task));
        queue.retain(|number| number != 5);
        assert_eq!(queue.pop(true), Some(tasks[3]));
        assert_eq!(queue.pop(true), Some(tasks[5]));
        // Slow rules come before names, but only one slow task runs.
        assert!(!queue.is_tried());
        assert_eq!(queue.pop(true), Some(tasks[1]));
        assert_eq!(queue.pop(true), None);
        assert!(queue.is_tried() && !queue.is_empty());
        assert_eq!(queue.pop(false), Some(tasks[2]));
        assert_eq!(queue.pop(false), Some(tasks[0]));
        assert!(queue.is_empty());
    }
}
