//! The records of non-blocking collectives, matched probes and one-sided communication. Older versions of the library do not
//! know all of them, so a setter is looked up only if it is there.

use super::{Code, OnRequest, Pointer, SUCCESS, callbacks, definitions, message, put};
use crate::otf2::event::{Collective, Event, Lock, OneSided, Operation, Window};

/// OTF2's number of an exclusive lock.
const EXCLUSIVE: u8 = 0;
/// OTF2's level of a synchronisation that did not happen.
const NO_SYNC: u32 = 0;
/// OTF2's numbers of atomic operations that return nothing.
const ACCUMULATE: u8 = 0;
const INCREMENT: u8 = 1;
const COMPARE_AND_SWAP: u8 = 3;

type OnProbe = extern "C" fn(u64, u64, u64, Pointer, Pointer, u32, u32, u32, u64) -> Code;
type OnMatched = extern "C" fn(u64, u64, u64, Pointer, Pointer, u64, u64) -> Code;
type OnWindow = extern "C" fn(u64, u64, u64, Pointer, Pointer, u32) -> Code;
type OnRmaCollective = extern "C" fn(u64, u64, u64, Pointer, Pointer, u8, u32, u32, u32, u64, u64) -> Code;
type OnGroupSync = extern "C" fn(u64, u64, u64, Pointer, Pointer, u32, u32, u32) -> Code;
type OnLock = extern "C" fn(u64, u64, u64, Pointer, Pointer, u32, u32, u64, u8) -> Code;
type OnRelease = extern "C" fn(u64, u64, u64, Pointer, Pointer, u32, u32, u64) -> Code;
type OnTransfer = extern "C" fn(u64, u64, u64, Pointer, Pointer, u32, u32, u64, u64) -> Code;
type OnAtomic = extern "C" fn(u64, u64, u64, Pointer, Pointer, u32, u32, u8, u64, u64, u64) -> Code;
type OnCompletion = extern "C" fn(u64, u64, u64, Pointer, Pointer, u32, u64) -> Code;
type OnCollectiveComplete = extern "C" fn(u64, u64, u64, Pointer, Pointer, u8, u32, u32, u64, u64, u64) -> Code;
type OnInterCommunicator = extern "C" fn(Pointer, u32, u32, u32, u32, u32, u32) -> Code;
type OnWindowDefinition = extern "C" fn(Pointer, u32, u32, u32) -> Code;

/// Declares the setters that are looked up in the library, each with the type of its callback.
macro_rules! setters {
    ($($name:ident = $symbol:literal: $callback:ty;)*) => {
        /// The setters that this version of the library has.
        pub struct Setters {
            $($name: Option<unsafe extern "C" fn(Pointer, $callback) -> Code>,)*
        }

        impl Setters {
            /// Looks them up.
            pub fn look_up(library: &libloading::Library) -> Self {
                Self {
                    // SAFETY: the types are those of the library's public headers, versions 2.0 to 3.2.
                    $($name: unsafe { library.get($symbol.as_bytes()) }.ok().map(|found| *found),)*
                }
            }
        }
    };
}

setters! {
    collective_request = "OTF2_EvtReaderCallbacks_SetNonBlockingCollectiveRequestCallback": OnRequest;
    collective_complete = "OTF2_EvtReaderCallbacks_SetNonBlockingCollectiveCompleteCallback": OnCollectiveComplete;
    probe = "OTF2_EvtReaderCallbacks_SetMpiProbeCallback": OnProbe;
    mrecv = "OTF2_EvtReaderCallbacks_SetMpiMrecvCallback": OnMatched;
    imrecv_request = "OTF2_EvtReaderCallbacks_SetMpiImrecvRequestCallback": OnMatched;
    imrecv = "OTF2_EvtReaderCallbacks_SetMpiImrecvCallback": OnMatched;
    window_create = "OTF2_EvtReaderCallbacks_SetRmaWinCreateCallback": OnWindow;
    window_destroy = "OTF2_EvtReaderCallbacks_SetRmaWinDestroyCallback": OnWindow;
    rma_collective = "OTF2_EvtReaderCallbacks_SetRmaCollectiveEndCallback": OnRmaCollective;
    group_sync = "OTF2_EvtReaderCallbacks_SetRmaGroupSyncCallback": OnGroupSync;
    request_lock = "OTF2_EvtReaderCallbacks_SetRmaRequestLockCallback": OnLock;
    acquire_lock = "OTF2_EvtReaderCallbacks_SetRmaAcquireLockCallback": OnLock;
    try_lock = "OTF2_EvtReaderCallbacks_SetRmaTryLockCallback": OnLock;
    release_lock = "OTF2_EvtReaderCallbacks_SetRmaReleaseLockCallback": OnRelease;
    put = "OTF2_EvtReaderCallbacks_SetRmaPutCallback": OnTransfer;
    get = "OTF2_EvtReaderCallbacks_SetRmaGetCallback": OnTransfer;
    atomic = "OTF2_EvtReaderCallbacks_SetRmaAtomicCallback": OnAtomic;
    complete_blocking = "OTF2_EvtReaderCallbacks_SetRmaOpCompleteBlockingCallback": OnCompletion;
    complete_local = "OTF2_EvtReaderCallbacks_SetRmaOpCompleteNonBlockingCallback": OnCompletion;
    complete_remote = "OTF2_EvtReaderCallbacks_SetRmaOpCompleteRemoteCallback": OnCompletion;
    define_intercommunicator = "OTF2_GlobalDefReaderCallbacks_SetInterCommCallback": OnInterCommunicator;
    define_window = "OTF2_GlobalDefReaderCallbacks_SetRmaWinCallback": OnWindowDefinition;
}

impl Setters {
    /// Sets the callbacks of events.
    ///
    /// # Safety
    /// `callbacks` is the library's, and lives.
    pub unsafe fn set_events(&self, callbacks: Pointer) {
        macro_rules! set {
            ($($setter:ident: $callback:expr;)*) => {
                // SAFETY: the caller's; the setters copy the functions' addresses.
                $(if let Some(set) = self.$setter { unsafe { set(callbacks, $callback) }; })*
            };
        }
        set! {
            collective_request: on_collective_request;
            collective_complete: on_collective_complete;
            probe: on_probe;
            mrecv: on_mrecv;
            imrecv_request: on_imrecv_request;
            imrecv: on_imrecv;
            window_create: on_window_create;
            window_destroy: on_window_destroy;
            rma_collective: on_rma_collective;
            group_sync: on_group_sync;
            request_lock: on_lock;
            acquire_lock: on_lock;
            try_lock: on_lock;
            release_lock: on_release;
            put: on_put;
            get: on_get;
            atomic: on_atomic;
            complete_blocking: on_completion;
            complete_local: on_local_completion;
            complete_remote: on_completion;
        }
    }

    /// Sets the callbacks of definitions.
    ///
    /// # Safety
    /// `callbacks` is the library's, and lives.
    pub unsafe fn set_definitions(&self, callbacks: Pointer) {
        if let Some(set) = self.define_window {
            // SAFETY: the caller's; the setter copies the function's address.
            unsafe { set(callbacks, on_window_definition) };
        }
        if let Some(set) = self.define_intercommunicator {
            // SAFETY: the caller's; the setter copies the function's address.
            unsafe { set(callbacks, on_intercommunicator) };
        }
    }
}

extern "C" fn on_intercommunicator(user_data: Pointer, id: u32, name: u32, _: u32, _: u32, _: u32, _: u32) -> Code {
    definitions(user_data).intercommunicators.push((id, name));
    SUCCESS
}

extern "C" fn on_window_definition(user_data: Pointer, id: u32, name: u32, comm: u32) -> Code {
    definitions(user_data).windows.push((id, name, comm));
    SUCCESS
}

callbacks! {
    on_collective_request(request: u64) => Event::CollectiveRequest(request);
    on_collective_complete(operation: u8, comm: u32, root: u32, sent: u64, received: u64, request: u64) =>
        Event::CollectiveComplete(Collective { operation, comm, root, sent, received }, request);
    on_probe(peer: u32, comm: u32, tag: u32, number: u64) => Event::Probe(message(peer, comm, tag, 0), number);
    on_mrecv(number: u64, _: u64) => Event::Mrecv(number);
    on_imrecv_request(number: u64, request: u64) => Event::ImrecvRequest(number, request);
    on_imrecv(request: u64, _: u64) => Event::ImrecvComplete(request);
    on_window_create(window: Window) => Event::Rma(OneSided::Create(window));
    on_window_destroy(window: Window) => Event::Rma(OneSided::Destroy(window));
    on_rma_collective(operation: u8, _: u32, window: Window, _: u32, _: u64, _: u64) =>
        Event::Rma(OneSided::Collective { operation, window });
    on_group_sync(level: u32, window: Window, group: u32) =>
        Event::Rma(OneSided::GroupSync { window, group, done: level != NO_SYNC });
    on_lock(window: Window, target: u32, _: u64, kind: u8) =>
        Event::Rma(OneSided::Lock(Lock { window, target, exclusive: kind == EXCLUSIVE }));
    on_release(window: Window, target: u32, _: u64) => Event::Rma(OneSided::Unlock { window, target });
    on_put(window: Window, target: u32, bytes: u64, matching: u64) =>
        start(Operation::Put { bytes }, window, target, matching);
    on_get(window: Window, target: u32, bytes: u64, matching: u64) =>
        start(Operation::Get { bytes }, window, target, matching);
    on_atomic(window: Window, target: u32, kind: u8, sent: u64, received: u64, matching: u64) =>
        start(atomic(kind, sent, received), window, target, matching);
    on_completion(window: Window, matching: u64) => complete(window, matching, false);
    on_local_completion(window: Window, matching: u64) => complete(window, matching, true);
}

fn start(operation: Operation, window: Window, target: u32, matching: u64) -> Event {
    Event::Rma(OneSided::Start { operation, window, target, matching })
}

fn complete(window: Window, matching: u64, local: bool) -> Event {
    Event::Rma(OneSided::Complete { window, matching, local })
}

fn atomic(kind: u8, sent: u64, received: u64) -> Operation {
    match kind {
        ACCUMULATE | INCREMENT => Operation::Accumulate { bytes: sent },
        COMPARE_AND_SWAP => Operation::CompareAndSwap { received },
        _ => Operation::Fetch { sent, received },
    }
}
