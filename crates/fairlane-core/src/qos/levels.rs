//! Service levels of messages, and the virtual lanes that service levels take.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::arbiter::MAX_VIRTUAL_LANES;
use super::classes::{Class, ClassSet, ClassSpec, MAX_CLASSES, Operation};
use crate::error::BuildError;
use crate::ids::{JobId, Rank, ServiceLevel, TrafficId, VirtualLane};

/// The purpose of a message, as far as the network can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum TrafficKind {
    /// Rendezvous requests, gets and acknowledgements of point-to-point messages.
    Control,
    /// Point-to-point payload that is sent at once.
    Eager,
    /// Point-to-point payload that is sent by rendezvous.
    Bulk,
    /// Payload of collectives: that which is sent by rendezvous, and what is sent at once if nothing is said of it.
    Collective,
    /// Rendezvous requests, gets and acknowledgements of collectives. Like those of point-to-point messages if nothing is
    /// said of it.
    CollectiveControl,
    /// Payload of collectives that is sent at once. Like their other payload if nothing is said of it.
    CollectiveEager,
}

impl TrafficKind {
    /// Every kind, in the order of declaration.
    pub const ALL: [Self; 6] =
        [Self::Control, Self::Eager, Self::Bulk, Self::Collective, Self::CollectiveControl, Self::CollectiveEager];

    /// The kind's name in lower case, as in scenario files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Eager => "eager",
            Self::Bulk => "bulk",
            Self::Collective => "collective",
            Self::CollectiveControl => "collective_control",
            Self::CollectiveEager => "collective_eager",
        }
    }

    /// The kind as an index into a table of kinds.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// The service level of every message: its sender's own level if it has one, else its receiver's own, else its class's, else
/// its traffic kind's, else its job's, else the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    default: ServiceLevel,
    kinds: [Option<ServiceLevel>; TrafficKind::ALL.len()],
    classes: Vec<Class>,
    jobs: Vec<JobLevels>,
}

/// Maximum number of jobs and classes of jobs that are counted apart: the interference matrix has a cell for every pair, 128 MiB
/// for this many.
const MOST_COUNTED: usize = 4096;

/// The service levels of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
struct JobLevels {
    own: Option<ServiceLevel>,
    ranks: Vec<Option<ServiceLevel>>,
    /// How many ranks have a level of their own, and how many classes select messages of the job.
    exceptions: usize,
    /// The classes that select messages of the job.
    classes: ClassSet,
    /// Those of them that are counted apart from the job's other messages.
    counted: ClassSet,
    /// Of its messages that have none of these; the classes follow, in order.
    traffic: TrafficId,
    /// By kind: what holds where neither rank nor the message's class has a level of its own.
    resolved: [ServiceLevel; TrafficKind::ALL.len()],
}

impl Levels {
    /// Every message on service level 0. `ranks` is the number of ranks of each job, in order of [`JobId`].
    #[must_use]
    pub fn new(ranks: &[u32]) -> Self {
        let job = |(number, ranks): (u16, &u32)| JobLevels {
            own: None,
            ranks: vec![None; *ranks as usize],
            exceptions: 0,
            classes: 0,
            counted: 0,
            traffic: TrafficId(number),
            resolved: [ServiceLevel(0); TrafficKind::ALL.len()],
        };
        let jobs = (0..).zip(ranks).map(job).collect();
        Self { default: ServiceLevel(0), kinds: [None; TrafficKind::ALL.len()], classes: Vec::new(), jobs }
    }

    /// The service level of a message from `sender` to `receiver`, ranks of `job`, and what it is counted for. `class`
    /// is asked for the number of its class if a class may select it.
    ///
    /// # Panics
    /// If there is no such job, rank or class.
    #[must_use]
    #[inline(always)]
    pub fn of(
        &self,
        job: JobId,
        sender: Rank,
        receiver: Rank,
        kind: TrafficKind,
        class: impl FnOnce() -> Option<usize>,
    ) -> (ServiceLevel, TrafficId) {
        let levels = &self.jobs[job.index()];
        let level = levels.resolved[kind.index()];
        if levels.exceptions == 0 {
            return (level, levels.traffic);
        }
        self.exceptional(levels, [sender, receiver], level, if levels.classes == 0 { None } else { class() })
    }

    /// As [`Levels::of`], where ranks or classes have levels of their own: `level` is what other messages have.
    #[inline(never)]
    fn exceptional(
        &self,
        &JobLevels { ref ranks, counted, traffic, .. }: &JobLevels,
        [sender, receiver]: [Rank; 2],
        level: ServiceLevel,
        class: Option<usize>,
    ) -> (ServiceLevel, TrafficId) {
        let of_class = || self.classes[class?].level;
        let level = ranks[sender.index()].or(ranks[receiver.index()]).or_else(of_class).unwrap_or(level);
        (level, traffic_of(traffic, counted, class))
    }

    /// The number of the class of a message of `job`: the first of those that select its communicator and the message itself.
    #[must_use]
    pub fn class(&self, job: JobId, communicator: ClassSet, operation: Operation, payload: u64) -> Option<usize> {
        let mut left = self.jobs[job.index()].classes & communicator;
        while left != 0 {
            let class = left.trailing_zeros() as usize;
            if self.classes[class].has_message(operation, payload) {
                return Some(class);
            }
            left &= left - 1;
        }
        None
    }

    /// What messages are counted for, by [`TrafficId`]: a job, and the number of a class, or `None` for its messages that have none.
    /// With more than 4,096 jobs and classes of jobs, classes are not counted apart.
    #[must_use]
    pub fn traffic(&self) -> Vec<(JobId, Option<usize>)> {
        let numbers = |set: ClassSet| (0..MAX_CLASSES).filter(move |class| set >> class & 1 == 1);
        let of_job = |(job, levels): (u16, &JobLevels)| {
            std::iter::once(None).chain(numbers(levels.counted).map(Some)).map(move |class| (JobId(job), class))
        };
        (0..).zip(&self.jobs).flat_map(of_job).collect()
    }

    /// The names of the classes, in order.
    #[must_use]
    pub fn class_names(&self) -> Vec<String> {
        self.classes.iter().map(|class| class.name.to_string()).collect()
    }

    /// Whether classes are counted apart.
    #[must_use]
    pub fn count_classes(&self) -> bool {
        self.jobs.iter().any(|job| job.counted != 0)
    }

    /// Counts the messages of each class apart from the other messages of its job, if there are not too many of them.
    pub fn count_by_class(&mut self) {
        let classes: usize = self.jobs.iter().map(|job| job.classes.count_ones() as usize).sum();
        if self.jobs.len() + classes > MOST_COUNTED {
            return;
        }
        let mut next = 0;
        for job in &mut self.jobs {
            (job.counted, job.traffic) = (job.classes, TrafficId(next));
            next += 1 + u16::try_from(job.classes.count_ones()).expect("invariant: at most 64 classes");
        }
    }

    /// Whether a class can select messages of `job`.
    #[must_use]
    #[inline]
    pub fn have_classes(&self, job: JobId) -> bool {
        self.jobs[job.index()].classes != 0
    }

    /// The classes that select messages of a communicator with this name, or of one without a name.
    #[must_use]
    pub fn classes_of(&self, communicator: Option<&str>) -> ClassSet {
        let classes = self.classes.iter().enumerate();
        classes.filter(|(_, class)| class.has_communicator(communicator)).map(|(number, _)| 1 << number).sum()
    }

    /// Whether messages of one rank to another can have different levels, by their kind or class.
    #[must_use]
    pub fn depend_on_message(&self) -> bool {
        let by_class =
            |set: ClassSet| (0..).zip(&self.classes).any(|(at, class)| set >> at & 1 == 1 && class.level.is_some());
        self.jobs.iter().any(|JobLevels { resolved, classes, .. }| {
            by_class(*classes) || resolved.iter().any(|level| *level != resolved[0])
        })
    }

    /// Defines the classes, in the order in which messages are compared with them; `jobs` are the names of the jobs.
    ///
    /// # Errors
    /// [`BuildError`] for more than [`MAX_CLASSES`], a level above 15 or an operation that does not exist.
    pub fn define_classes(&mut self, classes: &[ClassSpec], jobs: &[&str]) -> Result<(), BuildError> {
        if classes.len() > MAX_CLASSES {
            return Err(BuildError::value("classes", classes.len(), format!("at most {MAX_CLASSES} classes")));
        }
        let class = |spec: &ClassSpec| {
            let path = || format!("classes.{}.service_level", spec.name);
            let level = spec.service_level.map(|level| checked(&path(), ServiceLevel(level))).transpose()?;
            Class::new(spec.clone(), level)
        };
        self.classes = classes.iter().map(class).collect::<Result<_, _>>()?;
        for (job, name) in self.jobs.iter_mut().zip(jobs) {
            let chosen = self.classes.iter().enumerate().filter(|(_, class)| class.has_job(name));
            job.exceptions -= job.classes.count_ones() as usize;
            job.classes = chosen.map(|(number, _)| 1 << number).sum();
            job.exceptions += job.classes.count_ones() as usize;
        }
        Ok(())
    }

    /// Sets or takes away the level of a class.
    ///
    /// # Errors
    /// [`BuildError`] if the level is above 15 or there is no such class.
    pub fn set_class(&mut self, name: &str, level: Option<ServiceLevel>) -> Result<(), BuildError> {
        let level = level.map(|level| checked(&format!("classes.{name}.service_level"), level)).transpose()?;
        let allowed = self.classes.iter().map(|class| class.name.to_string()).collect();
        let class = self.classes.iter_mut().find(|class| *class.name == *name);
        let given = name.to_owned();
        class.ok_or(BuildError::UnknownName { kind: "traffic class", given, allowed })?.level = level;
        Ok(())
    }

    /// Sets the level of messages that have no other.
    ///
    /// # Errors
    /// [`BuildError::Value`] if the level is above 15.
    pub fn set_default(&mut self, level: ServiceLevel) -> Result<(), BuildError> {
        self.default = checked("qos.default", level)?;
        self.resolve();
        Ok(())
    }

    /// Sets or takes away the level of a traffic kind.
    ///
    /// # Errors
    /// [`BuildError::Value`] if the level is above 15.
    pub fn set_kind(&mut self, kind: TrafficKind, level: Option<ServiceLevel>) -> Result<(), BuildError> {
        self.kinds[kind.index()] =
            level.map(|level| checked(&format!("qos.kinds.{}", kind.name()), level)).transpose()?;
        self.resolve();
        Ok(())
    }

    /// Sets or takes away the level of a job.
    ///
    /// # Errors
    /// [`BuildError::Value`] if the level is above 15 or there is no such job.
    pub fn set_job(&mut self, job: JobId, level: Option<ServiceLevel>) -> Result<(), BuildError> {
        self.job_mut(job)?.own = level.map(|level| checked("service_level", level)).transpose()?;
        self.resolve();
        Ok(())
    }

    /// Sets or takes away the own level of a rank.
    ///
    /// # Errors
    /// [`BuildError::Value`] if the level is above 15 or there is no such job or rank.
    pub fn set_rank(&mut self, job: JobId, rank: Rank, level: Option<ServiceLevel>) -> Result<(), BuildError> {
        let level = level.map(|level| checked("service_level", level)).transpose()?;
        let JobLevels { ranks, exceptions, .. } = self.job_mut(job)?;
        let count = ranks.len();
        let own = ranks
            .get_mut(rank.index())
            .ok_or_else(|| BuildError::value("rank", rank, format!("job {job} has {count} ranks, numbered from 0")))?;
        let before = std::mem::replace(own, level);
        *exceptions = *exceptions + usize::from(level.is_some()) - usize::from(before.is_some());
        Ok(())
    }

    /// Takes away the own levels of all ranks of a job.
    ///
    /// # Errors
    /// [`BuildError::Value`] if there is no such job.
    pub fn clear_ranks(&mut self, job: JobId) -> Result<(), BuildError> {
        let job = self.job_mut(job)?;
        job.ranks.fill(None);
        job.exceptions = job.classes.count_ones() as usize;
        Ok(())
    }

    fn job_mut(&mut self, job: JobId) -> Result<&mut JobLevels, BuildError> {
        let jobs = self.jobs.len();
        let found = self.jobs.get_mut(job.index());
        found.ok_or_else(|| BuildError::value("job", job, format!("there are {jobs} jobs, numbered from 0")))
    }

    fn resolve(&mut self) {
        let kind = |kind: TrafficKind| self.kinds[kind.index()];
        let kinds = TrafficKind::ALL.map(|of| match of {
            TrafficKind::CollectiveControl => kind(of).or(kind(TrafficKind::Control)),
            TrafficKind::CollectiveEager => kind(of).or(kind(TrafficKind::Collective)),
            _ => kind(of),
        });
        for job in &mut self.jobs {
            job.resolved = kinds.map(|kind| kind.or(job.own).unwrap_or(self.default));
        }
    }
}

/// What a message of a class, or of none, is counted for, if that of those without is `first` and `counted` are those that follow.
#[inline]
fn traffic_of(first: TrafficId, counted: ClassSet, class: Option<usize>) -> TrafficId {
    let Some(class) = class.filter(|class| counted >> class & 1 == 1) else { return first };
    let before = (counted & ((1 << class) - 1)).count_ones();
    TrafficId(first.0 + 1 + u16::try_from(before).expect("invariant: at most 64 classes"))
}

fn checked(path: &str, level: ServiceLevel) -> Result<ServiceLevel, BuildError> {
    if level.index() < ServiceLevel::COUNT {
        Ok(level)
    } else {
        Err(BuildError::value(path, level, "a service level, 0 to 15"))
    }
}

/// The virtual lane of each service level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Sl2Vl([VirtualLane; ServiceLevel::COUNT]);

impl Sl2Vl {
    /// The map that sends service level `i` to lane `lanes[i]`, and levels beyond the list to lane 0.
    ///
    /// # Errors
    /// [`BuildError::Value`] for more than 16 levels or a lane beyond [`MAX_VIRTUAL_LANES`].
    pub fn new(lanes: &[u8]) -> Result<Self, BuildError> {
        if lanes.len() > ServiceLevel::COUNT {
            let value = format!("{} entries", lanes.len());
            return Err(BuildError::value("qos.sl2vl", value, "at most 16, one for each service level"));
        }
        let mut map = Self::default();
        for (level, &lane) in lanes.iter().enumerate() {
            if usize::from(lane) >= MAX_VIRTUAL_LANES {
                let allowed = format!("a virtual lane, 0 to {}", MAX_VIRTUAL_LANES - 1);
                return Err(BuildError::value(format!("qos.sl2vl[{level}]"), lane, allowed));
            }
            map.0[level] = VirtualLane(lane);
        }
        Ok(map)
    }

    /// The lane of `level`.
    ///
    /// # Panics
    /// If the level is above 15; [`Levels`] gives no such level.
    #[must_use]
    #[inline]
    pub const fn lane(&self, level: ServiceLevel) -> VirtualLane {
        self.0[level.index()]
    }

    /// How many virtual lanes a port needs: one more than the highest lane of the map.
    #[must_use]
    pub fn lanes(&self) -> u8 {
        self.0.iter().map(|lane| lane.0).max().unwrap_or(0) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qos::classes::WORLD;

    const JOB: JobId = JobId(1);

    fn levels() -> Levels {
        Levels::new(&[2, 4])
    }

    fn of(levels: &Levels, sender: u32, receiver: u32) -> u8 {
        levels.of(JOB, Rank(sender), Rank(receiver), TrafficKind::Bulk, || None).0.0
    }

    #[test]
    fn each_source_of_a_level_gives_way_to_the_one_before_it() {
        let mut levels = levels();
        assert_eq!(of(&levels, 0, 3), 0);
        levels.set_default(ServiceLevel(1)).unwrap();
        assert_eq!(of(&levels, 0, 3), 1);
        levels.set_job(JOB, Some(ServiceLevel(2))).unwrap();
        assert_eq!(of(&levels, 0, 3), 2);
        levels.set_kind(TrafficKind::Bulk, Some(ServiceLevel(3))).unwrap();
        assert_eq!(of(&levels, 0, 3), 3);
        levels.set_rank(JOB, Rank(3), Some(ServiceLevel(4))).unwrap();
        assert_eq!(of(&levels, 0, 3), 4);
        levels.set_rank(JOB, Rank(0), Some(ServiceLevel(5))).unwrap();
        assert_eq!((of(&levels, 0, 3), of(&levels, 3, 0), of(&levels, 1, 0), of(&levels, 1, 2)), (5, 4, 5, 3));
    }

    #[test]
    fn kinds_of_collectives_are_like_others_until_something_is_said() {
        let mut levels = levels();
        levels.set_kind(TrafficKind::Control, Some(ServiceLevel(3))).unwrap();
        levels.set_kind(TrafficKind::Collective, Some(ServiceLevel(2))).unwrap();
        let of = |levels: &Levels, kind| levels.of(JOB, Rank(0), Rank(1), kind, || None).0.0;
        assert_eq!(TrafficKind::ALL.map(|kind| of(&levels, kind)), [3, 0, 0, 2, 3, 2]);
        levels.set_kind(TrafficKind::CollectiveControl, Some(ServiceLevel(5))).unwrap();
        levels.set_kind(TrafficKind::CollectiveEager, Some(ServiceLevel(4))).unwrap();
        assert_eq!(TrafficKind::ALL.map(|kind| of(&levels, kind)), [3, 0, 0, 2, 5, 4]);
    }

    #[test]
    fn levels_can_be_taken_away_again() {
        let mut levels = levels();
        levels.set_job(JOB, Some(ServiceLevel(2))).unwrap();
        levels.set_rank(JOB, Rank(0), Some(ServiceLevel(5))).unwrap();
        levels.set_rank(JOB, Rank(0), None).unwrap();
        assert_eq!(of(&levels, 0, 1), 2);
        levels.set_job(JOB, None).unwrap();
        assert_eq!(levels, super::tests::levels());
    }

    #[test]
    fn jobs_and_kinds_are_kept_apart() {
        let mut levels = levels();
        levels.set_rank(JobId(0), Rank(1), Some(ServiceLevel(7))).unwrap();
        levels.set_job(JobId(0), Some(ServiceLevel(6))).unwrap();
        levels.set_kind(TrafficKind::Control, Some(ServiceLevel(8))).unwrap();
        assert!((0..4).all(|rank| of(&levels, rank, rank ^ 1) == 0));
        for kind in TrafficKind::ALL {
            let control = matches!(kind, TrafficKind::Control | TrafficKind::CollectiveControl);
            let expected = if control { 8 } else { 0 };
            assert_eq!(levels.of(JOB, Rank(0), Rank(1), kind, || None).0.0, expected, "{}", kind.name());
        }
    }

    #[test]
    fn classes_are_counted_after_the_other_messages_of_their_job() {
        let class =
            |name: &str, jobs: Option<Vec<String>>| ClassSpec { name: name.to_owned(), jobs, ..ClassSpec::default() };
        let mut levels = Levels::new(&[2, 2]);
        assert_eq!(levels.traffic(), [(JobId(0), None), (JobId(1), None)]);
        let only_second = Some(vec!["second".to_owned()]);
        levels.define_classes(&[class("a", only_second), class("b", None)], &["first", "second"]).unwrap();
        assert!(!levels.count_classes());
        levels.count_by_class();
        let expected = [(0, None), (0, Some(1)), (1, None), (1, Some(0)), (1, Some(1))];
        assert_eq!(levels.traffic(), expected.map(|(job, class)| (JobId(job), class)));
        for (number, (job, class)) in (0..).zip(expected) {
            let counted = levels.of(JobId(job), Rank(0), Rank(1), TrafficKind::Bulk, || class).1;
            assert_eq!(counted, TrafficId(number));
        }
        let mut many = Levels::new(&[1; MOST_COUNTED]);
        many.define_classes(&[class("b", None)], &["job"; MOST_COUNTED]).unwrap();
        many.count_by_class();
        assert!(!many.count_classes(), "the matrix would be too large");
        assert_eq!(many.of(JobId(7), Rank(0), Rank(0), TrafficKind::Bulk, || Some(0)).1, TrafficId(7));
    }

    #[test]
    fn a_class_is_the_first_that_selects_a_message() {
        let class = |name: &str, operations: &[&str], above| ClassSpec {
            name: name.to_owned(),
            operations: Some(operations.iter().map(|name| (*name).to_owned()).collect()),
            above,
            ..ClassSpec::default()
        };
        let mut levels = levels();
        let experts = ClassSpec { communicators: Some(vec!["experts".to_owned()]), ..class("a", &["alltoall"], None) };
        let large = ClassSpec { jobs: Some(vec!["second".to_owned()]), ..class("b", &["collective"], Some(100)) };
        levels.define_classes(&[experts, large], &["first", "second"]).unwrap();
        let class = |name, operation, bytes| levels.class(JOB, levels.classes_of(name), operation, bytes);
        assert_eq!(class(Some("experts"), Operation::Alltoall, 8), Some(0));
        assert_eq!(class(Some(WORLD), Operation::Alltoall, 100), None);
        assert_eq!(class(Some(WORLD), Operation::Alltoall, 101), Some(1));
        assert_eq!(class(None, Operation::Barrier, 101), Some(1));
        assert_eq!(class(Some("experts"), Operation::PointToPoint, 101), None);
        assert_eq!(levels.class(JobId(0), levels.classes_of(None), Operation::Barrier, 101), None);
        assert!(!levels.depend_on_message());
        levels.set_class("b", Some(ServiceLevel(3))).unwrap();
        assert!(levels.depend_on_message());
        let of = |levels: &Levels, class| levels.of(JOB, Rank(0), Rank(1), TrafficKind::Bulk, || class).0.0;
        assert_eq!((of(&levels, Some(0)), of(&levels, Some(1)), of(&levels, None)), (0, 3, 0));
        levels.set_kind(TrafficKind::Bulk, Some(ServiceLevel(2))).unwrap();
        levels.set_rank(JOB, Rank(1), Some(ServiceLevel(4))).unwrap();
        assert_eq!(of(&levels, Some(1)), 4);
        levels.clear_ranks(JOB).unwrap();
        assert_eq!((of(&levels, Some(0)), of(&levels, Some(1))), (2, 3));
        let error = levels.set_class("c", None).unwrap_err().to_string();
        assert!(error.contains("traffic class") && error.contains('c'), "{error}");
        let wrong = ClassSpec { operations: Some(vec!["alltoal".to_owned()]), ..ClassSpec::default() };
        assert!(levels.define_classes(&[wrong], &[]).unwrap_err().to_string().contains("alltoall"));
        assert!(levels.define_classes(&vec![ClassSpec::default(); 65], &[]).is_err());
    }

    #[test]
    fn operations_have_four_bits() {
        for (value, (operation, _)) in (0_u8..).zip(Operation::ALL) {
            assert_eq!((operation as u8, Operation::of(value)), (value, operation));
            assert!(value < 16);
        }
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let mut levels = levels();
        let bad = Some(ServiceLevel(16));
        assert!(levels.set_kind(TrafficKind::Eager, bad).unwrap_err().to_string().contains("qos.kinds.eager = 16"));
        assert!(levels.set_default(ServiceLevel(99)).unwrap_err().to_string().contains("0 to 15"));
        assert!(levels.set_job(JobId(2), None).unwrap_err().to_string().contains("there are 2 jobs"));
        let rank = levels.set_rank(JOB, Rank(4), None).unwrap_err().to_string();
        assert!(rank.contains("job 1 has 4 ranks"), "{rank}");
        assert_eq!(levels, super::tests::levels());
    }

    #[test]
    fn sl2vl_counts_its_lanes() {
        assert_eq!(Sl2Vl::default().lanes(), 1);
        let map = Sl2Vl::new(&[0, 3, 1]).unwrap();
        assert_eq!(
            (map.lanes(), map.lane(ServiceLevel(1)), map.lane(ServiceLevel(9))),
            (4, VirtualLane(3), VirtualLane(0))
        );
        assert!(Sl2Vl::new(&[0, 32]).unwrap_err().to_string().contains("qos.sl2vl[1] = 32: a virtual lane, 0 to 31"));
        assert!(Sl2Vl::new(&[0; 17]).unwrap_err().to_string().contains("17 entries"));
    }
}
