//! OTF2's own library, opened at run time, behind a safe face.
//!
//! The library is C; this file, with its records, is the only one that calls it. All calls to one archive are made under a lock. The event
//! file of a rank is opened for a batch of events and closed again, so that archives of thousands of ranks need no open
//! files and no buffers between batches.
//!
//! Callbacks take fewer parameters than some versions of the library pass: with C's calling conventions the caller clears
//! the stack, so further arguments are simply not looked at.

#![allow(unsafe_code)]

mod records;

use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use self::records::Setters;
use super::definitions::{Definitions, Raw, RawGroup, RawLocation};
use super::event::{Collective, Event, Message, Moment};

type Code = i32;
type Pointer = *mut c_void;

const SUCCESS: Code = 0;

/// Declares the functions that are looked up in the library.
macro_rules! functions {
    ($($name:ident = $symbol:literal: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        #[allow(clippy::struct_field_names, reason = "they are the library's names")]
        struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            fn look_up(library: &libloading::Library) -> Result<Self, String> {
                Ok(Self {
                    // SAFETY: the types are those of the library's public headers, versions 2.0 to 3.2.
                    $($name: *unsafe { library.get($symbol.as_bytes()) }.map_err(|e| e.to_string())?,)*
                })
            }
        }
    };
}

functions! {
    on_error = "OTF2_Error_RegisterCallback": fn(OnError, Pointer) -> Pointer;
    describe_error = "OTF2_Error_GetDescription": fn(Code) -> *const c_char;
    open = "OTF2_Reader_Open": fn(*const c_char) -> Pointer;
    close = "OTF2_Reader_Close": fn(Pointer) -> Code;
    set_serial = "OTF2_Reader_SetSerialCollectiveCallbacks": fn(Pointer) -> Code;
    version = "OTF2_Reader_GetVersion": fn(Pointer, *mut u8, *mut u8, *mut u8) -> Code;
    global_definitions = "OTF2_Reader_GetGlobalDefReader": fn(Pointer) -> Pointer;
    new_definition_callbacks = "OTF2_GlobalDefReaderCallbacks_New": fn() -> Pointer;
    delete_definition_callbacks = "OTF2_GlobalDefReaderCallbacks_Delete": fn(Pointer);
    register_definitions = "OTF2_Reader_RegisterGlobalDefCallbacks": fn(Pointer, Pointer, Pointer, Pointer) -> Code;
    read_definitions = "OTF2_Reader_ReadAllGlobalDefinitions": fn(Pointer, Pointer, *mut u64) -> Code;
    on_clock = "OTF2_GlobalDefReaderCallbacks_SetClockPropertiesCallback": fn(Pointer, OnClock) -> Code;
    on_string = "OTF2_GlobalDefReaderCallbacks_SetStringCallback": fn(Pointer, OnString) -> Code;
    on_attribute = "OTF2_GlobalDefReaderCallbacks_SetAttributeCallback": fn(Pointer, OnAttribute) -> Code;
    on_location = "OTF2_GlobalDefReaderCallbacks_SetLocationCallback": fn(Pointer, OnLocation) -> Code;
    on_region = "OTF2_GlobalDefReaderCallbacks_SetRegionCallback": fn(Pointer, OnRegion) -> Code;
    on_group = "OTF2_GlobalDefReaderCallbacks_SetGroupCallback": fn(Pointer, OnGroup) -> Code;
    on_comm = "OTF2_GlobalDefReaderCallbacks_SetCommCallback": fn(Pointer, OnComm) -> Code;
    select = "OTF2_Reader_SelectLocation": fn(Pointer, u64) -> Code;
    open_local = "OTF2_Reader_OpenDefFiles": fn(Pointer) -> Code;
    close_local = "OTF2_Reader_CloseDefFiles": fn(Pointer) -> Code;
    local_definitions = "OTF2_Reader_GetDefReader": fn(Pointer, u64) -> Pointer;
    read_local = "OTF2_Reader_ReadAllLocalDefinitions": fn(Pointer, Pointer, *mut u64) -> Code;
    close_local_reader = "OTF2_Reader_CloseDefReader": fn(Pointer, Pointer) -> Code;
    open_events = "OTF2_Reader_OpenEvtFiles": fn(Pointer) -> Code;
    close_events = "OTF2_Reader_CloseEvtFiles": fn(Pointer) -> Code;
    events = "OTF2_Reader_GetEvtReader": fn(Pointer, u64) -> Pointer;
    close_event_reader = "OTF2_Reader_CloseEvtReader": fn(Pointer, Pointer) -> Code;
    register_events = "OTF2_Reader_RegisterEvtCallbacks": fn(Pointer, Pointer, Pointer, Pointer) -> Code;
    seek = "OTF2_EvtReader_Seek": fn(Pointer, u64) -> Code;
    read_events = "OTF2_Reader_ReadLocalEvents": fn(Pointer, Pointer, u64, *mut u64) -> Code;
    new_event_callbacks = "OTF2_EvtReaderCallbacks_New": fn() -> Pointer;
    delete_event_callbacks = "OTF2_EvtReaderCallbacks_Delete": fn(Pointer);
    on_enter = "OTF2_EvtReaderCallbacks_SetEnterCallback": fn(Pointer, OnRegionEvent) -> Code;
    on_leave = "OTF2_EvtReaderCallbacks_SetLeaveCallback": fn(Pointer, OnRegionEvent) -> Code;
    on_send = "OTF2_EvtReaderCallbacks_SetMpiSendCallback": fn(Pointer, OnMessage) -> Code;
    on_receive = "OTF2_EvtReaderCallbacks_SetMpiRecvCallback": fn(Pointer, OnMessage) -> Code;
    on_isend = "OTF2_EvtReaderCallbacks_SetMpiIsendCallback": fn(Pointer, OnRequestMessage) -> Code;
    on_irecv = "OTF2_EvtReaderCallbacks_SetMpiIrecvCallback": fn(Pointer, OnRequestMessage) -> Code;
    on_isend_complete = "OTF2_EvtReaderCallbacks_SetMpiIsendCompleteCallback": fn(Pointer, OnRequest) -> Code;
    on_irecv_request = "OTF2_EvtReaderCallbacks_SetMpiIrecvRequestCallback": fn(Pointer, OnRequest) -> Code;
    on_test = "OTF2_EvtReaderCallbacks_SetMpiRequestTestCallback": fn(Pointer, OnRequest) -> Code;
    on_cancelled = "OTF2_EvtReaderCallbacks_SetMpiRequestCancelledCallback": fn(Pointer, OnRequest) -> Code;
    on_collective = "OTF2_EvtReaderCallbacks_SetMpiCollectiveEndCallback": fn(Pointer, OnCollective) -> Code;
    has_attribute = "OTF2_AttributeList_TestAttributeByID": fn(Pointer, u32) -> bool;
    attribute = "OTF2_AttributeList_GetUint64": fn(Pointer, u32, *mut u64) -> Code;
}

type OnError = extern "C" fn(Pointer, *const c_char, u64, *const c_char, Code, *const c_char) -> Code;
type OnClock = extern "C" fn(Pointer, u64, u64, u64) -> Code;
type OnString = extern "C" fn(Pointer, u32, *const c_char) -> Code;
type OnAttribute = extern "C" fn(Pointer, u32, u32) -> Code;
type OnLocation = extern "C" fn(Pointer, u64, u32, u8, u64, u32) -> Code;
type OnRegion = extern "C" fn(Pointer, u32, u32, u32, u32, u8, u8) -> Code;
type OnGroup = extern "C" fn(Pointer, u32, u32, u8, u8, u32, u32, *const u64) -> Code;
type OnComm = extern "C" fn(Pointer, u32, u32, u32) -> Code;
type OnRegionEvent = extern "C" fn(u64, u64, u64, Pointer, Pointer, u32) -> Code;
type OnMessage = extern "C" fn(u64, u64, u64, Pointer, Pointer, u32, u32, u32, u64) -> Code;
type OnRequestMessage = extern "C" fn(u64, u64, u64, Pointer, Pointer, u32, u32, u32, u64, u64) -> Code;
type OnRequest = extern "C" fn(u64, u64, u64, Pointer, Pointer, u64) -> Code;
type OnCollective = extern "C" fn(u64, u64, u64, Pointer, Pointer, u8, u32, u32, u64, u64) -> Code;

/// The library reports what is wrong by its return values too; it must not print.
extern "C" fn ignore_error(
    _: Pointer,
    _: *const c_char,
    _: u64,
    _: *const c_char,
    code: Code,
    _: *const c_char,
) -> Code {
    code
}

/// An open archive.
pub struct Archive {
    reader: Mutex<Reader>,
    /// The definitions of the archive.
    pub definitions: Definitions,
    /// The version of OTF2 that wrote it.
    pub version: String,
}

/// The library's reader of an archive.
struct Reader {
    functions: Functions,
    setters: Setters,
    reader: Pointer,
    event_callbacks: Pointer,
    /// Declared last: dropped after everything that came from it.
    _library: libloading::Library,
}

// SAFETY: the library ties nothing to a thread; `Archive` lets one thread at a time use the reader.
unsafe impl Send for Reader {}

impl Archive {
    /// Opens an archive with the library at `library`, and reads its definitions.
    pub fn open(library: &Path, anchor: &Path) -> Result<Self, String> {
        // SAFETY: loading runs the library's initialisers; that this is OTF2 is what the option says.
        let library = unsafe { libloading::Library::new(library) }.map_err(|e| e.to_string())?;
        let (functions, setters) = (Functions::look_up(&library)?, Setters::look_up(&library));
        let path = CString::new(anchor.as_os_str().as_bytes()).map_err(|_| "a path with a zero byte".to_owned())?;
        // SAFETY: a registered function lives as long as the process; the path is a C string.
        let reader = unsafe {
            (functions.on_error)(ignore_error, ptr::null_mut());
            (functions.open)(path.as_ptr())
        };
        if reader.is_null() {
            return Err("not an OTF2 archive, or a damaged one".to_owned());
        }
        let mut reader = Reader { functions, setters, reader, event_callbacks: ptr::null_mut(), _library: library };
        let (definitions, version) = reader.prepare()?;
        Ok(Self { reader: Mutex::new(reader), definitions, version })
    }

    /// Reads up to `count` events of a location from event number `from` (the first is 1) on, appends those that matter, and
    /// returns how many events were read in all.
    pub fn read(&self, location: u64, from: u64, count: u64, into: &mut Vec<(u64, Event)>) -> Result<u64, String> {
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sink = Sink {
            events: into,
            cpu_time: self.definitions.cpu_time,
            has_attribute: reader.functions.has_attribute,
            attribute: reader.functions.attribute,
        };
        reader.read(location, from, count, &mut sink)
    }
}

impl Reader {
    fn check(&self, code: Code, what: &str) -> Result<(), String> {
        if code == SUCCESS {
            return Ok(());
        }
        // SAFETY: the library returns a static C string for every code.
        let problem = unsafe { CStr::from_ptr((self.functions.describe_error)(code)) };
        Err(format!("{what}: {}", problem.to_string_lossy()))
    }

    /// Reads all definitions, and gets ready to read events.
    fn prepare(&mut self) -> Result<(Definitions, String), String> {
        let f = &self.functions;
        let (mut major, mut minor, mut bugfix) = (0, 0, 0);
        // SAFETY: the reader is open; the pointers are to live variables.
        let codes = unsafe {
            [(f.set_serial)(self.reader), (f.version)(self.reader, &raw mut major, &raw mut minor, &raw mut bugfix)]
        };
        codes.into_iter().try_for_each(|code| self.check(code, "opening the archive"))?;
        let definitions = Definitions::new(&self.read_definitions()?)?;
        self.read_local_definitions(&definitions)?;
        // SAFETY: the reader is open; the setters copy the functions' addresses.
        unsafe {
            let callbacks = (f.new_event_callbacks)();
            (f.on_enter)(callbacks, enter);
            (f.on_leave)(callbacks, leave);
            (f.on_send)(callbacks, send);
            (f.on_receive)(callbacks, receive);
            (f.on_isend)(callbacks, isend);
            (f.on_irecv)(callbacks, irecv);
            (f.on_isend_complete)(callbacks, isend_complete);
            (f.on_irecv_request)(callbacks, irecv_request);
            (f.on_test)(callbacks, request_test);
            (f.on_cancelled)(callbacks, request_cancelled);
            (f.on_collective)(callbacks, collective_end);
            self.setters.set_events(callbacks);
            self.event_callbacks = callbacks;
        }
        Ok((definitions, format!("{major}.{minor}.{bugfix}")))
    }

    fn read_definitions(&self) -> Result<Raw, String> {
        let f = &self.functions;
        let mut raw = Raw::default();
        // SAFETY: the reader is open; the callbacks get `raw`, which outlives the reading, as their user data.
        let code = unsafe {
            let definitions = (f.global_definitions)(self.reader);
            let callbacks = (f.new_definition_callbacks)();
            (f.on_clock)(callbacks, clock);
            (f.on_string)(callbacks, string);
            (f.on_attribute)(callbacks, attribute);
            (f.on_location)(callbacks, location);
            (f.on_region)(callbacks, region);
            (f.on_group)(callbacks, group);
            (f.on_comm)(callbacks, comm);
            self.setters.set_definitions(callbacks);
            (f.register_definitions)(self.reader, definitions, callbacks, (&raw mut raw).cast());
            (f.delete_definition_callbacks)(callbacks);
            let mut read = 0;
            (f.read_definitions)(self.reader, definitions, &raw mut read)
        };
        self.check(code, "reading the definitions")?;
        Ok(raw)
    }

    /// Local definitions map each location's own numbers to the archive's; the library applies them to the events.
    fn read_local_definitions(&self, definitions: &Definitions) -> Result<(), String> {
        let f = &self.functions;
        // SAFETY: the reader is open; locations are selected before files are opened, as the library wants it.
        unsafe {
            for (location, _) in definitions.locations() {
                self.check((f.select)(self.reader, location), "selecting a location")?;
            }
            if (f.open_local)(self.reader) == SUCCESS {
                for (location, _) in definitions.locations() {
                    let local = (f.local_definitions)(self.reader, location);
                    if !local.is_null() {
                        let mut read = 0;
                        let code = (f.read_local)(self.reader, local, &raw mut read);
                        self.check(code, &format!("reading the definitions of location {location}"))?;
                        (f.close_local_reader)(self.reader, local);
                    }
                }
                (f.close_local)(self.reader);
            }
            self.check((f.open_events)(self.reader), "opening the events")
        }
    }

    fn read(&self, location: u64, from: u64, count: u64, sink: &mut Sink<'_>) -> Result<u64, String> {
        let f = &self.functions;
        // SAFETY: the reader is open; the callbacks get `sink`, which outlives the reading, as their user data.
        let (code, read) = unsafe {
            let events = (f.events)(self.reader, location);
            if events.is_null() {
                return Err(format!("the events of location {location} cannot be opened"));
            }
            (f.register_events)(self.reader, events, self.event_callbacks, ptr::from_mut(sink).cast());
            let mut code = if from > 1 { (f.seek)(events, from) } else { SUCCESS };
            let mut read = 0;
            if code == SUCCESS {
                code = (f.read_events)(self.reader, events, count, &raw mut read);
            }
            (f.close_event_reader)(self.reader, events);
            (code, read)
        };
        self.check(code, &format!("reading events of location {location} from event {from} on"))?;
        Ok(read)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // SAFETY: the reader is open, and nothing uses it any more.
        unsafe {
            if !self.event_callbacks.is_null() {
                (self.functions.delete_event_callbacks)(self.event_callbacks);
                (self.functions.close_events)(self.reader);
            }
            (self.functions.close)(self.reader);
        }
    }
}

/// Where the definition callbacks put what they get.
fn definitions<'a>(user_data: Pointer) -> &'a mut Raw {
    // SAFETY: `read_definitions` passes a `Raw` that nothing else uses meanwhile.
    unsafe { &mut *user_data.cast::<Raw>() }
}

extern "C" fn clock(user_data: Pointer, resolution: u64, _: u64, _: u64) -> Code {
    definitions(user_data).ticks_per_second = resolution;
    SUCCESS
}

extern "C" fn string(user_data: Pointer, id: u32, text: *const c_char) -> Code {
    // SAFETY: the library passes a C string.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    definitions(user_data).strings.insert(id, text);
    SUCCESS
}

extern "C" fn attribute(user_data: Pointer, id: u32, name: u32) -> Code {
    definitions(user_data).attributes.push((id, name));
    SUCCESS
}

extern "C" fn location(user_data: Pointer, id: u64, _: u32, kind: u8, events: u64, process: u32) -> Code {
    definitions(user_data).locations.push(RawLocation { id, kind, events, process });
    SUCCESS
}

extern "C" fn region(user_data: Pointer, id: u32, name: u32, _: u32, _: u32, _: u8, paradigm: u8) -> Code {
    definitions(user_data).regions.push((id, name, paradigm));
    SUCCESS
}

extern "C" fn group(
    user_data: Pointer,
    id: u32,
    _: u32,
    kind: u8,
    paradigm: u8,
    flags: u32,
    count: u32,
    members: *const u64,
) -> Code {
    let members = if count == 0 || members.is_null() {
        Vec::new()
    } else {
        // SAFETY: the library passes an array of `count` members.
        unsafe { std::slice::from_raw_parts(members, count as usize) }.to_vec()
    };
    definitions(user_data).groups.insert(id, RawGroup { kind, paradigm, flags, members });
    SUCCESS
}

extern "C" fn comm(user_data: Pointer, id: u32, name: u32, group: u32) -> Code {
    definitions(user_data).communicators.push((id, name, group));
    SUCCESS
}

/// Where the event callbacks put what they get.
struct Sink<'a> {
    events: &'a mut Vec<(u64, Event)>,
    cpu_time: Option<u32>,
    has_attribute: unsafe extern "C" fn(Pointer, u32) -> bool,
    attribute: unsafe extern "C" fn(Pointer, u32, *mut u64) -> Code,
}

impl Sink<'_> {
    fn moment(&self, time: u64, attributes: Pointer) -> Moment {
        let cpu = self.cpu_time.and_then(|id| {
            let mut value = 0;
            // SAFETY: the library passes its list of attributes (or null, which it accepts) for the time of the callback.
            let found = unsafe {
                (self.has_attribute)(attributes, id) && (self.attribute)(attributes, id, &raw mut value) == SUCCESS
            };
            found.then_some(value)
        });
        Moment { wall: time, cpu }
    }
}

fn put(user_data: Pointer, position: u64, event: impl FnOnce(&Sink<'_>) -> Event) -> Code {
    // SAFETY: `Reader::read` passes a `Sink` that nothing else uses meanwhile.
    let sink = unsafe { &mut *user_data.cast::<Sink<'_>>() };
    let event = event(sink);
    sink.events.push((position, event));
    SUCCESS
}

extern "C" fn enter(_: u64, time: u64, position: u64, user_data: Pointer, attributes: Pointer, region: u32) -> Code {
    put(user_data, position, |sink| Event::Enter(region, sink.moment(time, attributes)))
}

extern "C" fn leave(_: u64, time: u64, position: u64, user_data: Pointer, attributes: Pointer, region: u32) -> Code {
    put(user_data, position, |sink| Event::Leave(region, sink.moment(time, attributes)))
}

/// Declares callbacks of events, each with the parameters that its record has besides those of all, and its event.
macro_rules! callbacks {
    ($($name:ident($($parameter:tt: $type:ty),*) => $event:expr;)*) => {$(
        #[allow(clippy::too_many_arguments, reason = "the library's signature")]
        extern "C" fn $name(
            _: u64, _: u64, position: u64, user_data: Pointer, _: Pointer $(, $parameter: $type)*
        ) -> Code {
            put(user_data, position, |_| $event)
        }
    )*};
}
use callbacks;

callbacks! {
    send(peer: u32, comm: u32, tag: u32, bytes: u64) => Event::Send(message(peer, comm, tag, bytes));
    receive(peer: u32, comm: u32, tag: u32, bytes: u64) => Event::Recv(message(peer, comm, tag, bytes));
    isend(peer: u32, comm: u32, tag: u32, bytes: u64, request: u64) =>
        Event::Isend(message(peer, comm, tag, bytes), request);
    irecv(peer: u32, comm: u32, tag: u32, bytes: u64, request: u64) =>
        Event::Irecv(message(peer, comm, tag, bytes), request);
    isend_complete(request: u64) => Event::IsendComplete(request);
    irecv_request(request: u64) => Event::IrecvRequest(request);
    request_test(request: u64) => Event::RequestTest(request);
    request_cancelled(request: u64) => Event::RequestCancelled(request);
    collective_end(operation: u8, comm: u32, root: u32, sent: u64, received: u64) =>
        Event::CollectiveEnd(Collective { operation, comm, root, sent, received });
}

const fn message(peer: u32, comm: u32, tag: u32, bytes: u64) -> Message {
    Message { peer, comm, tag: tag.cast_signed(), bytes }
}
