//! Operations in words, for errors.

use crate::ids::Rank;
use crate::program::{Collective, Comm, GraphOp, Op, P2p, Rma, Tag, Volume};

pub(super) fn of(op: &Op) -> String {
    match op {
        Op::Compute(span) => format!("Compute({span})"),
        Op::P2p(op) => point_to_point(op),
        Op::Collective(op) => collective(op),
        Op::Comm(op) => communicator(op),
        Op::Rma(op) => one_sided(op),
        Op::BeginTiming => "BeginTiming".to_owned(),
        Op::MarkProgress => "MarkProgress".to_owned(),
        Op::EndBurst(after) => format!("EndBurst(after {after})"),
        Op::Pause(span) => format!("Pause({span})"),
        Op::Graph(op) => graph(op),
    }
}

fn point_to_point(op: &P2p) -> String {
    match op {
        P2p::Send { to, bytes, tag, comm, .. } => {
            format!("Send({} bytes to {to}, tag {tag}, communicator {comm})", bytes.0)
        }
        P2p::Isend { to, bytes, tag, comm, request, .. } => {
            format!("Isend({} bytes to {to}, tag {tag}, communicator {comm}, request {request})", bytes.0)
        }
        P2p::Recv { from, tag, comm } => format!("Recv({})", pattern(*from, *tag, *comm)),
        P2p::Irecv { from, tag, comm, request } => format!("Irecv({}, request {request})", pattern(*from, *tag, *comm)),
        P2p::Probe { from, tag, comm } => format!("Probe({})", pattern(*from, *tag, *comm)),
        P2p::Wait(request) => format!("Wait(request {request})"),
        P2p::WaitAll(requests) => format!("WaitAll({})", numbers("requests", requests)),
        P2p::WaitAny(requests) => format!("WaitAny({})", numbers("requests", requests)),
        P2p::WaitSome(requests) => format!("WaitSome({})", numbers("requests", requests)),
        P2p::Datagram { to, bytes } => format!("Datagram({} bytes to {to})", bytes.0),
        P2p::RequestFree(request) => format!("RequestFree(request {request})"),
    }
}

fn graph(op: &GraphOp) -> String {
    match op {
        GraphOp::Offload(span, request) => format!("Offload({span}, request {request})"),
        GraphOp::Delay(span, request) => format!("Delay({span}, request {request})"),
        GraphOp::Report(request) => format!("Report(request {request})"),
        GraphOp::WaitReport => "WaitReport".to_owned(),
    }
}

fn collective(op: &Collective) -> String {
    match op {
        Collective::Blocking { kind, comm, root, volume } => {
            format!("{}({}, communicator {comm}, root {root})", kind.name(), volume_of(volume))
        }
        Collective::Nonblocking { kind, comm, root, volume, request } => {
            format!("i{}({}, communicator {comm}, root {root}, request {request})", kind.name(), volume_of(volume))
        }
        Collective::Neighbor { kind, comm, volume } => {
            format!("{}({}, communicator {comm})", kind.name(), volume_of(volume))
        }
        Collective::NonblockingNeighbor { kind, comm, volume, request } => {
            format!("i{}({}, communicator {comm}, request {request})", kind.name(), volume_of(volume))
        }
    }
}

fn communicator(op: &Comm) -> String {
    match op {
        Comm::Dup { comm, .. } => format!("CommDup(communicator {comm})"),
        Comm::Split { comm, color: Some(color), .. } => format!("CommSplit(communicator {comm}, colour {color})"),
        Comm::Split { comm, color: None, .. } => format!("CommSplit(communicator {comm}, no colour)"),
        Comm::Create { comm, members, .. } => format!("CommCreate(communicator {comm}, {} members)", members.len()),
        Comm::Topology { comm, .. } => format!("CommTopology(communicator {comm})"),
        Comm::Define { new, members } => format!("CommDefine(communicator {new}, {} members)", members.len()),
        Comm::SetName { comm, name } => format!("CommSetName(communicator {comm}, {name:?})"),
        Comm::Free(comm) => format!("CommFree(communicator {comm})"),
    }
}

fn one_sided(op: &Rma) -> String {
    match op {
        Rma::Create { comm, win } => format!("WinCreate(window {win}, communicator {comm})"),
        Rma::Free { win } => format!("WinFree(window {win})"),
        Rma::Access { kind, win, target, bytes, .. } => {
            format!("{}({} bytes, target {target}, window {win})", kind.name(), bytes.0)
        }
        Rma::Fence { win } => format!("WinFence(window {win})"),
        Rma::Lock { win, target, exclusive } => {
            let kind = if *exclusive { "exclusive" } else { "shared" };
            format!("WinLock({kind}, target {target}, window {win})")
        }
        Rma::Unlock { win, target } => format!("WinUnlock(target {target}, window {win})"),
        Rma::LockAll { win } => format!("WinLockAll(window {win})"),
        Rma::UnlockAll { win } => format!("WinUnlockAll(window {win})"),
        Rma::Flush { win, target: Some(target) } => format!("WinFlush(target {target}, window {win})"),
        Rma::Flush { win, target: None } => format!("WinFlush(all targets, window {win})"),
        Rma::Post { win, group } => format!("WinPost({}, window {win})", numbers("origins", group)),
        Rma::Start { win, group } => format!("WinStart({}, window {win})", numbers("targets", group)),
        Rma::Complete { win } => format!("WinComplete(window {win})"),
        Rma::Wait { win } => format!("WinWait(window {win})"),
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

fn numbers<N: ToString>(what: &str, all: &[N]) -> String {
    const SHOWN: usize = 6;
    let shown: Vec<String> = all.iter().take(SHOWN).map(N::to_string).collect();
    let more = if all.len() > SHOWN { format!(" and {} more", all.len() - SHOWN) } else { String::new() };
    format!("{what} {}{more}", shown.join(", "))
}
