// SPDX-License-Identifier: GPL-2.0

//! The kernel as the [`Host`] of `hist` commands.

use super::{
    host::{
        Host,
        NewTrigger, //
    },
    registry::{
        CommandState,
        Registry,
        RegistryGuard, //
    },
};
use crate::{
    event::{
        Clocks,
        EventDesc,
        EventField,
        FilterType,
        GroupNodes,
        GroupPlace, //
    },
    filter::Symbols,
    hist::{
        spec::target::{
            SnapshotTarget,
            SynthTarget, //
        },
        Histogram,
        Tenancy, //
    },
    hook::{
        clock::CLOCKS,
        groups::KernelGroups,
        site::EventSite,
        synthetic::SynthEvent,
        HistTrigger, //
    },
    map::{
        Cpus,
        Wake, //
    },
    rust::{
        cgroup,
        cpu,
        event::{
            self,
            Event,
            TaskFilter, //
        },
        function,
        memory,
        snapshot::KernelSnapshot,
        text, //
        tracefs::{
            EventName,
            KernelFile,
            TracingDir, //
        },
    },
    text::copy, //
};
use core::cell::RefCell;
use kernel::{
    prelude::*,
    str::CString,
    sync::{
        lock::mutex::MutexGuard,
        Arc, //
    },
};

/// A tracing directory of the kernel during a `hist` command, which excludes other ones.
pub(super) struct KernelHost<'a> {
    registry: &'a Registry,
    dir: &'a TracingDir,
    /// An open file of tracefs.
    kernel: &'a KernelFile,
    commands: RefCell<MutexGuard<'a, CommandState>>,
}

/// An event and its names.
pub(super) struct NamedEvent {
    event: Event,
    system: CString,
    name: CString,
}

impl NamedEvent {
    /// Keeps `event`, which was found by this name. Fails with `ENOMEM`.
    pub(super) fn new(event: Event, name: EventName<'_>) -> Result<Self> {
        Ok(Self {
            event,
            system: name.system.try_into()?,
            name: name.event.try_into()?,
        })
    }
}

impl<'a> KernelHost<'a> {
    /// Waits for other `hist` commands to end, and keeps new ones waiting.
    pub(super) fn new(registry: &'a Registry, dir: &'a TracingDir, kernel: &'a KernelFile) -> Self {
        Self {
            registry,
            dir,
            kernel,
            commands: RefCell::new(registry.lock_commands()),
        }
    }
}

impl<'a> Host for KernelHost<'a> {
    type Site = EventSite;
    type Event = NamedEvent;
    type Locked<'b>
        = RegistryGuard<'b>
    where
        Self: 'b;

    fn lock(&self) -> RegistryGuard<'_> {
        self.registry.lock()
    }

    fn find(&self, system: &[u8], name: &[u8]) -> Result<Option<NamedEvent>> {
        let [system, name] = [c_string(system)?, c_string(name)?];
        let found = self.registry.find(EventName {
            dir: self.dir,
            system: &system,
            event: &name,
        });
        match found {
            Ok(event) => Ok(Some(NamedEvent {
                event,
                system,
                name,
            })),
            Err(ENOMEM) => Err(ENOMEM),
            Err(_) => Ok(None),
        }
    }

    fn has_event(&self, system: &[u8], name: &[u8]) -> Result<bool> {
        self.registry.knows(self.dir, [system, name])
    }

    fn describe(&self, event: &NamedEvent) -> Result<Arc<EventDesc>> {
        let NamedEvent {
            event,
            system,
            name,
        } = event;
        Ok(Arc::new(describe([system, name], event)?, GFP_KERNEL)?)
    }

    fn triggers(&self, event: &NamedEvent) -> Result<KVec<Arc<HistTrigger>>> {
        let mut triggers = KVec::new();
        let listed = self.registry.lock().triggers(&event.event);
        for trigger in listed.iter().flat_map(|listed| listed.iter()) {
            triggers.push(trigger.clone(), GFP_KERNEL)?;
        }
        Ok(triggers)
    }

    fn is_here(&self, site: &EventSite) -> bool {
        site.dir == *self.dir
    }

    fn add(&self, event: NamedEvent, new: NewTrigger) -> Result {
        let event = event.event;
        let site = EventSite {
            dir: event.dir().clone(),
            tasks: TaskFilter::new(&event, self.registry.instance())?,
        };
        let trigger = HistTrigger::new(site, new.data, new.compiled, new.filter, new.flags);
        self.registry.lock().add(event, trigger)
    }

    fn remove(&self, event: &NamedEvent, trigger: &HistTrigger) -> Result {
        self.registry.lock().remove(&event.event, trigger)
    }

    fn synth_event(&self, name: &[u8]) -> Result<Option<KBox<dyn SynthTarget>>> {
        let scratch = self.commands.borrow_mut().scratch()?;
        let event = SynthEvent::find(&c_string(name)?, scratch, self.registry.instance())?;
        Ok(match event {
            Some(event) => Some(KBox::new(event, GFP_KERNEL)?),
            None => None,
        })
    }

    fn cond_snapshot(&self) -> Result<KBox<dyn SnapshotTarget>> {
        let snapshot = KernelSnapshot::new(self.dir, self.kernel)?;
        Ok(KBox::new(snapshot, GFP_KERNEL)?)
    }

    fn symbols(&self) -> &dyn Symbols {
        &KernelFunctions
    }

    fn cpus(&self) -> Cpus {
        Cpus {
            count: cpu::count(),
            own: cpu::online_end(),
            node: cpu::node,
            current: cpu::current,
        }
    }

    fn clocks(&self) -> Clocks {
        CLOCKS
    }

    fn random(&self) -> u64 {
        text::random()
    }

    fn max_map_bytes() -> usize {
        max_map_bytes()
    }

    fn group_nodes(&self) -> &'static dyn GroupNodes {
        &KernelGroups
    }

    fn waker(&self) -> Result<KBox<dyn Wake>> {
        self.registry.works.worker().waker()
    }

    fn tend(&self, histogram: &Arc<Histogram>) -> Result<Option<Tenancy>> {
        let tenancy = self
            .registry
            .works
            .worker()
            .tend(histogram, max_map_bytes)?;
        if !histogram.spec().takes_user_stacks() {
            return Ok(tenancy);
        }
        let keeper = self.registry.objects.keeper();
        let objects = keeper.begin_use(self.cpus(), self.random())?;
        Ok(Some(KBox::new((objects, tenancy), GFP_KERNEL)?))
    }
}

/// Half of the available memory: allocating all of it would make the kernel kill processes.
pub(super) fn max_map_bytes() -> usize {
    memory::available() / 2
}

/// Converts to a string for the kernel. Fails with `EINVAL` for a NUL inside, and with `ENOMEM`.
pub(super) fn c_string(bytes: &[u8]) -> Result<CString> {
    let mut copy = copy(bytes)?;
    copy.push(0, GFP_KERNEL)?;
    CString::try_from(CStr::from_bytes_until_nul(&copy).map_err(|_| EINVAL)?).map_err(|_| ENOMEM)
}

/// Describes an event and its fields for `src/hist/` and `src/filter/`.
pub(super) fn describe([system, name]: [&CStr; 2], event: &Event) -> Result<EventDesc> {
    let mut desc = EventDesc::new(system.to_bytes(), name.to_bytes())?;
    event.for_each_field(|field| desc.add(describe_field(&field, false)?))?;
    for field in &event::COMMON_FIELDS {
        desc.add(describe_field(field, true)?)?;
    }
    Ok(desc)
}

fn describe_field(field: &event::KernelField<'_>, common: bool) -> Result<EventField> {
    EventField::new(
        field.name.to_bytes(),
        field.type_.to_bytes(),
        field.offset,
        field.size,
        field.signed,
        match field.filter_type {
            event::FILTER_STATIC_STRING => FilterType::StaticString,
            event::FILTER_DYN_STRING => FilterType::DynString,
            event::FILTER_RDYN_STRING => FilterType::RelDynString,
            event::FILTER_PTR_STRING => FilterType::PtrString,
            event::FILTER_TRACE_FN => FilterType::TraceFn,
            event::FILTER_CPUMASK => FilterType::CpuMask,
            event::FILTER_COMM => FilterType::Comm,
            event::FILTER_CPU => FilterType::Cpu,
            event::FILTER_STACKTRACE => FilterType::Stacktrace,
            _ => FilterType::Other,
        },
        common,
    )
}

/// Function lookup in the running kernel.
pub(super) struct KernelFunctions;

impl Symbols for KernelFunctions {
    fn address(&self, name: &[u8]) -> Option<usize> {
        function::address(&c_string(name).ok()?)
    }

    fn function(&self, address: usize) -> Option<(usize, usize)> {
        function::around(address)
    }

    fn group(&self, path: &[u8]) -> Option<GroupPlace> {
        let (id, level) = cgroup::find(&c_string(path).ok()?)?;
        Some(GroupPlace { id, level })
    }
}
