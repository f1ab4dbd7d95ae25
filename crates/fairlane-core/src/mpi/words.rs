//! Operations in words, for errors.

use crate::ids::Rank;
use crate::program::{Op, Tag, Volume};

pub(super) fn of(op: &Op) -> String {
    match op {
        Op::Compute(span) => format!("Compute({span})"),
        Op::Send { to, bytes, tag, comm, .. } => {
            format!("Send({} bytes to {to}, tag {tag}, communicator {comm})", bytes.0)
        }
        Op::Isend { to, bytes, tag, comm, request, .. } => {
            format!("Isend({} bytes to {to}, tag {tag}, communicator {comm}, request {request})", bytes.0)
        }
        Op::Recv { from, tag, comm } => format!("Recv({})", pattern(*from, *tag, *comm)),
        Op::Irecv { from, tag, comm, request } => format!("Irecv({}, request {request})", pattern(*from, *tag, *comm)),
        Op::Probe { from, tag, comm } => format!("Probe({})", pattern(*from, *tag, *comm)),
        Op::Wait(request) => format!("Wait(request {request})"),
        Op::WaitAll(requests) => format!("WaitAll({})", list(requests)),
        Op::WaitAny(requests) => format!("WaitAny({})", list(requests)),
        Op::WaitSome(requests) => format!("WaitSome({})", list(requests)),
        Op::Datagram { to, bytes } => format!("Datagram({} bytes to {to})", bytes.0),
        Op::RequestFree(request) => format!("RequestFree(request {request})"),
        Op::Collective { kind, comm, root, volume } => {
            format!("{}({}, communicator {comm}, root {root})", kind.name(), volume_of(volume))
        }
        Op::CommDup { comm, .. } => format!("CommDup(communicator {comm})"),
        Op::CommSplit { comm, color, .. } => match color {
            Some(color) => format!("CommSplit(communicator {comm}, colour {color})"),
            None => format!("CommSplit(communicator {comm}, no colour)"),
        },
        Op::CommCreate { comm, members, .. } => format!("CommCreate(communicator {comm}, {} members)", members.len()),
        Op::CommDefine { new, members } => format!("CommDefine(communicator {new}, {} members)", members.len()),
        Op::CommFree(comm) => format!("CommFree(communicator {comm})"),
        Op::MarkProgress => "MarkProgress".to_owned(),
        _ => rare(op),
    }
}

/// Operations that few programs have.
fn rare(op: &Op) -> String {
    match op {
        Op::Icollective { kind, comm, root, volume, request } => {
            format!("i{}({}, communicator {comm}, root {root}, request {request})", kind.name(), volume_of(volume))
        }
        Op::Neighbor { kind, comm, volume } => format!("{}({}, communicator {comm})", kind.name(), volume_of(volume)),
        Op::Ineighbor { kind, comm, volume, request } => {
            format!("i{}({}, communicator {comm}, request {request})", kind.name(), volume_of(volume))
        }
        Op::CommTopology { comm, .. } => format!("CommTopology(communicator {comm})"),
        Op::WinCreate { comm, win } => format!("WinCreate(window {win}, communicator {comm})"),
        Op::WinFree { win } => format!("WinFree(window {win})"),
        Op::Rma { kind, win, target, bytes, .. } => {
            format!("{}({} bytes, target {target}, window {win})", kind.name(), bytes.0)
        }
        Op::WinFence { win } => format!("WinFence(window {win})"),
        Op::WinLock { win, target, exclusive } => {
            let kind = if *exclusive { "exclusive" } else { "shared" };
            format!("WinLock({kind}, target {target}, window {win})")
        }
        Op::WinUnlock { win, target } => format!("WinUnlock(target {target}, window {win})"),
        Op::WinLockAll { win } => format!("WinLockAll(window {win})"),
        Op::WinUnlockAll { win } => format!("WinUnlockAll(window {win})"),
        Op::WinFlush { win, target: Some(target) } => format!("WinFlush(target {target}, window {win})"),
        Op::WinFlush { win, target: None } => format!("WinFlush(all targets, window {win})"),
        Op::WinPost { win, group } => format!("WinPost({}, window {win})", numbers("origins", group)),
        Op::WinStart { win, group } => format!("WinStart({}, window {win})", numbers("targets", group)),
        Op::WinComplete { win } => format!("WinComplete(window {win})"),
        Op::WinWait { win } => format!("WinWait(window {win})"),
        Op::BeginTiming => "BeginTiming".to_owned(),
        Op::EndBurst(after) => format!("EndBurst(after {after})"),
        Op::Pause(span) => format!("Pause({span})"),
        _ => unreachable!("invariant: the caller has taken every other operation"),
    }
}

fn pattern(from: Option<Rank>, tag: Option<Tag>, comm: u32) -> String {
    let from = from.map_or_else(|| "any".to_owned(), |from| from.to_string());
    let tag = tag.map_or_else(|| "any".to_owned(), |tag| tag.to_string());
    format!("from {from}, tag {tag}, communicator {comm}")
}

fn volume_of(volume: &Volume) -> String {
    match volume {
        Volume::Uniform(bytes) => format!("{} bytes", bytes.0),
        Volume::PerRank(blocks) => format!(
            "{} blocks of {} bytes in all",
            blocks.len(),
            blocks.iter().map(|block| u128::from(*block)).sum::<u128>()
        ),
    }
}

fn list(requests: &[u32]) -> String {
    numbers("requests", requests)
}

fn numbers<N: ToString>(what: &str, all: &[N]) -> String {
    const SHOWN: usize = 6;
    let shown: Vec<String> = all.iter().take(SHOWN).map(N::to_string).collect();
    let more = if all.len() > SHOWN { format!(" and {} more", all.len() - SHOWN) } else { String::new() };
    format!("{what} {}{more}", shown.join(", "))
}
