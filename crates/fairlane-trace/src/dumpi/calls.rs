//! The calls a DUMPI file can hold: by function number, the name, how the arguments are laid out, and what the call
//! means to a replay.
//!
//! A layout has one letter for each argument, in the order of the file; all numbers are big-endian:
//!
//! | letter | argument |
//! |---|---|
//! | `i`, `l` | a signed number of 32, 64 bits |
//! | `h`, `b` | a handle of 16, 8 bits (communicator, group, datatype; reduction, ordering) |
//! | `r`, `R` | the root, 32 bits; the caller's rank is the first, second argument |
//! | `?` | the next letter is there only at the root, i.e. if the caller's rank is the root |
//! | `s` | statuses: a count, then the statuses; not there unless the record's mask says so |
//! | `I`, `H`, `B` | a count, then as many numbers of 32, 16, 8 bits |
//! | `J` | a count, then as many `I` |
//! | `c`, `C`, `K` | a text: a count, then as many bytes; a count, then as many `c`; a count, then as many `C` |
//! | `a` | the program's arguments: as `C`, but the count stands twice before version 0.6.2 |
//! | `x`, `y` | as `I`, but a single number before version 0.6.9, 0.6.8 |

use fairlane_core::program::SendMode::{self, Standard, Synchronous};

/// The meaning of a call for a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// No communication: nothing to replay.
    Local,
    /// Cannot be replayed; the reason.
    Unsupported(&'static str),
    /// No recorder writes such a record.
    Unrecorded,
    Init,
    Finalize,
    Send(SendMode),
    Bsend,
    Isend(SendMode),
    Ibsend,
    Recv,
    Irecv,
    Probe,
    Iprobe,
    Sendrecv,
    SendrecvReplace,
    SendInit(SendMode),
    BsendInit,
    RecvInit,
    Start,
    Startall,
    Wait,
    Test,
    Waitany,
    Testany,
    Waitall,
    Testall,
    Waitsome,
    Testsome,
    RequestFree,
    Cancel,
    Barrier,
    Bcast,
    Reduce,
    Allreduce,
    Scan,
    Gather,
    Gatherv,
    Scatter,
    Scatterv,
    Allgather,
    Allgatherv,
    Alltoall,
    Alltoallv,
    Alltoallw,
    ReduceScatter,
    CommSize,
    CommRank,
    CommDup,
    CommSplit,
    CommCreate,
    CommFree,
    CartCreate,
    CartSub,
    GraphCreate,
    CommGroup,
    GroupSize,
    GroupUnion,
    GroupIntersection,
    GroupDifference,
    GroupIncl,
    GroupExcl,
    GroupRangeIncl,
    GroupRangeExcl,
    GroupFree,
    TypeSize,
    TypeContiguous,
    TypeVector,
    TypeIndexed,
    TypeStruct,
    TypeSame,
    TypeSubarray,
    TypeFree,
    WinCreate,
    WinFree,
    WinGroup,
    WinFence,
    WinLock,
    WinUnlock,
    WinPost,
    WinStart,
    WinComplete,
    WinWait,
    WinTest,
    Put,
    Get,
    Accumulate,
}

use Call::*;

/// A function number's entry.
pub struct Format {
    /// The call's name.
    pub name: &'static str,
    /// The layout of its arguments.
    pub layout: &'static str,
    /// Its meaning.
    pub call: Call,
}

const fn f(name: &'static str, layout: &'static str, call: Call) -> Format {
    Format { name, layout, call }
}

const INTERCOMMUNICATORS: &str = "intercommunicators and dynamic processes are not supported";
const FILES: &str = "MPI-IO is not supported";
const GENERALIZED: &str = "generalized requests are not supported";
const ABORTED: &str = "the recorded application aborted here";

/// The function number that ends the stream of records.
pub const END_OF_STREAM: u16 = 293;

/// A function number that no file holds, for records whose number is not known.
pub const UNKNOWN: u16 = 290;

/// The calls, by function number.
#[rustfmt::skip]
pub static CALLS: [Format; END_OF_STREAM as usize] = [
    f("MPI_Send", "ihiih", Send(Standard)), f("MPI_Recv", "ihiihs", Recv), f("MPI_Get_count", "shi", Local),
    f("MPI_Bsend", "ihiih", Bsend), f("MPI_Ssend", "ihiih", Send(Synchronous)),
    f("MPI_Rsend", "ihiih", Send(Standard)), f("MPI_Buffer_attach", "i", Local), f("MPI_Buffer_detach", "i", Local),
    f("MPI_Isend", "ihiihi", Isend(Standard)), f("MPI_Ibsend", "ihiihi", Ibsend),
    f("MPI_Issend", "ihiihi", Isend(Synchronous)), f("MPI_Irsend", "ihiihi", Isend(Standard)),
    f("MPI_Irecv", "ihiihi", Irecv), f("MPI_Wait", "is", Wait), f("MPI_Test", "iis", Test),
    f("MPI_Request_free", "i", RequestFree), f("MPI_Waitany", "iIis", Waitany), f("MPI_Testany", "iIiis", Testany),
    f("MPI_Waitall", "iIs", Waitall), f("MPI_Testall", "iIis", Testall), f("MPI_Waitsome", "iIiIs", Waitsome),
    f("MPI_Testsome", "iIiIs", Testsome), f("MPI_Iprobe", "iihis", Iprobe), f("MPI_Probe", "iihs", Probe),
    f("MPI_Cancel", "i", Cancel), f("MPI_Test_cancelled", "si", Local),
    f("MPI_Send_init", "ihiihi", SendInit(Standard)), f("MPI_Bsend_init", "ihiihi", BsendInit),
    f("MPI_Ssend_init", "ihiihi", SendInit(Synchronous)), f("MPI_Rsend_init", "ihiihi", SendInit(Standard)),
    f("MPI_Recv_init", "ihiihi", RecvInit), f("MPI_Start", "i", Start), f("MPI_Startall", "iI", Startall),
    f("MPI_Sendrecv", "ihiiihiihs", Sendrecv), f("MPI_Sendrecv_replace", "ihiiiihs", SendrecvReplace),
    f("MPI_Type_contiguous", "ihh", TypeContiguous), f("MPI_Type_vector", "iiihh", TypeVector),
    f("MPI_Type_hvector", "iiihh", TypeVector), f("MPI_Type_indexed", "iIIhh", TypeIndexed),
    f("MPI_Type_hindexed", "iIIhh", TypeIndexed), f("MPI_Type_struct", "iIxHh", TypeStruct),
    f("MPI_Address", "i", Local), f("MPI_Type_extent", "hi", Local), f("MPI_Type_size", "hi", TypeSize),
    f("MPI_Type_lb", "hi", Local), f("MPI_Type_ub", "hi", Local), f("MPI_Type_commit", "h", Local),
    f("MPI_Type_free", "h", TypeFree), f("MPI_Get_elements", "shi", Local), f("MPI_Pack", "ihiiih", Local),
    f("MPI_Unpack", "iiiihh", Local), f("MPI_Pack_size", "ihhi", Local), f("MPI_Barrier", "h", Barrier),
    f("MPI_Bcast", "ihih", Bcast), f("MPI_Gather", "iihrh?i?h", Gather), f("MPI_Gatherv", "iiihrh?I?Ih", Gatherv),
    f("MPI_Scatter", "iihrh?i?h", Scatter), f("MPI_Scatterv", "iihihrh?I?I", Scatterv),
    f("MPI_Allgather", "ihihh", Allgather), f("MPI_Allgatherv", "iihIIhh", Allgatherv),
    f("MPI_Alltoall", "ihihh", Alltoall), f("MPI_Alltoallv", "iIIhIIhh", Alltoallv), f("MPI_Reduce", "ihbih", Reduce),
    f("MPI_Op_create", "ib", Local), f("MPI_Op_free", "b", Local), f("MPI_Allreduce", "ihbh", Allreduce),
    f("MPI_Reduce_scatter", "iIhbh", ReduceScatter), f("MPI_Scan", "ihbh", Scan), f("MPI_Group_size", "hi", GroupSize),
    f("MPI_Group_rank", "hi", Local), f("MPI_Group_translate_ranks", "hiIhI", Local),
    f("MPI_Group_compare", "hhb", Local), f("MPI_Comm_group", "hh", CommGroup),
    f("MPI_Group_union", "hhh", GroupUnion), f("MPI_Group_intersection", "hhh", GroupIntersection),
    f("MPI_Group_difference", "hhh", GroupDifference), f("MPI_Group_incl", "hiIh", GroupIncl),
    f("MPI_Group_excl", "hiIh", GroupExcl), f("MPI_Group_range_incl", "hiJh", GroupRangeIncl),
    f("MPI_Group_range_excl", "hiJh", GroupRangeExcl), f("MPI_Group_free", "h", GroupFree),
    f("MPI_Comm_size", "hi", CommSize), f("MPI_Comm_rank", "hi", CommRank), f("MPI_Comm_compare", "hhb", Local),
    f("MPI_Comm_dup", "hh", CommDup), f("MPI_Comm_create", "hhh", CommCreate), f("MPI_Comm_split", "hiih", CommSplit),
    f("MPI_Comm_free", "h", CommFree), f("MPI_Comm_test_inter", "hi", Local), f("MPI_Comm_remote_size", "hi", Local),
    f("MPI_Comm_remote_group", "hh", Local), f("MPI_Intercomm_create", "hihiih", Unsupported(INTERCOMMUNICATORS)),
    f("MPI_Intercomm_merge", "hih", Unsupported(INTERCOMMUNICATORS)), f("MPI_Keyval_create", "h", Local),
    f("MPI_Keyval_free", "h", Local), f("MPI_Attr_put", "hi", Local), f("MPI_Attr_get", "hii", Local),
    f("MPI_Attr_delete", "hi", Local), f("MPI_Topo_test", "hb", Local), f("MPI_Cart_create", "hiIIih", CartCreate),
    f("MPI_Dims_create", "iiII", Local), f("MPI_Graph_create", "ihiIIih", GraphCreate),
    f("MPI_Graphdims_get", "hii", Local), f("MPI_Graph_get", "iihiiII", Local), f("MPI_Cartdim_get", "hi", Local),
    f("MPI_Cart_get", "ihiIIy", Local), f("MPI_Cart_rank", "ihIi", Local), f("MPI_Cart_coords", "ihiiI", Local),
    f("MPI_Graph_neighbors_count", "hii", Local), f("MPI_Graph_neighbors", "ihiiI", Local),
    f("MPI_Cart_shift", "hiiii", Local), f("MPI_Cart_sub", "ihIh", CartSub), f("MPI_Cart_map", "hiIIi", Local),
    f("MPI_Graph_map", "ihiIIi", Local), f("MPI_Get_processor_name", "ci", Local), f("MPI_Get_version", "ii", Local),
    f("MPI_Errhandler_create", "h", Local), f("MPI_Errhandler_set", "hh", Local), f("MPI_Errhandler_get", "hh", Local),
    f("MPI_Errhandler_free", "h", Local), f("MPI_Error_string", "ici", Local), f("MPI_Error_class", "ii", Local),
    f("MPI_Wtime", "", Local), f("MPI_Wtick", "", Local), f("MPI_Init", "a", Init), f("MPI_Finalize", "", Finalize),
    f("MPI_Initialized", "i", Local), f("MPI_Abort", "hi", Unsupported(ABORTED)),
    f("MPI_Pcontrol", "", Unrecorded), f("MPI_Close_port", "c", Local),
    f("MPI_Comm_accept", "chihh", Unsupported(INTERCOMMUNICATORS)),
    f("MPI_Comm_connect", "chihh", Unsupported(INTERCOMMUNICATORS)), f("MPI_Comm_disconnect", "h", CommFree),
    f("MPI_Comm_get_parent", "h", Unsupported(INTERCOMMUNICATORS)),
    f("MPI_Comm_join", "ih", Unsupported(INTERCOMMUNICATORS)), f("MPI_Comm_spawn", "irhh?c?C?i?h?I", Unsupported(INTERCOMMUNICATORS)),
    f("MPI_Comm_spawn_multiple", "iiRhh?i?C?K?I?H?I", Unsupported(INTERCOMMUNICATORS)), f("MPI_Lookup_name", "chc", Local),
    f("MPI_Open_port", "hc", Local), f("MPI_Publish_name", "chc", Local), f("MPI_Unpublish_name", "chc", Local),
    f("MPI_Accumulate", "ihiiihbh", Accumulate), f("MPI_Get", "ihiiihh", Get),
    f("MPI_Put", "ihiiihh", Put), f("MPI_Win_complete", "h", WinComplete),
    f("MPI_Win_create", "iihhh", WinCreate), f("MPI_Win_fence", "bh", WinFence),
    f("MPI_Win_free", "h", WinFree), f("MPI_Win_get_group", "hh", WinGroup),
    f("MPI_Win_lock", "bibh", WinLock), f("MPI_Win_post", "hbh", WinPost),
    f("MPI_Win_start", "hbh", WinStart), f("MPI_Win_test", "hi", WinTest),
    f("MPI_Win_unlock", "ih", WinUnlock), f("MPI_Win_wait", "h", WinWait),
    f("MPI_Alltoallw", "iIIHIIHh", Alltoallw), f("MPI_Exscan", "ihbh", Scan), f("MPI_Add_error_class", "i", Local),
    f("MPI_Add_error_code", "ii", Local), f("MPI_Add_error_string", "ic", Local),
    f("MPI_Comm_call_errhandler", "hi", Local), f("MPI_Comm_create_keyval", "h", Local),
    f("MPI_Comm_delete_attr", "hh", Local), f("MPI_Comm_free_keyval", "h", Local),
    f("MPI_Comm_get_attr", "hhi", Local), f("MPI_Comm_get_name", "hci", Local), f("MPI_Comm_set_attr", "hh", Local),
    f("MPI_Comm_set_name", "hc", Local), f("MPI_File_call_errhandler", "hi", Unsupported(FILES)),
    f("MPI_Grequest_complete", "i", Unsupported(GENERALIZED)), f("MPI_Grequest_start", "i", Unsupported(GENERALIZED)),
    f("MPI_Init_thread", "abb", Init), f("MPI_Is_thread_main", "i", Local), f("MPI_Query_thread", "b", Local),
    f("MPI_Status_set_cancelled", "si", Local), f("MPI_Status_set_elements", "shi", Local),
    f("MPI_Type_create_keyval", "h", Local), f("MPI_Type_delete_attr", "hh", Local), f("MPI_Type_dup", "hh", TypeSame),
    f("MPI_Type_free_keyval", "h", Local), f("MPI_Type_get_attr", "hhi", Local),
    f("MPI_Type_get_contents", "iiihiiiIIH", Local), f("MPI_Type_get_envelope", "hiiib", Local),
    f("MPI_Type_get_name", "hci", Local), f("MPI_Type_set_attr", "hh", Local), f("MPI_Type_set_name", "hc", Local),
    f("MPI_Type_match_size", "bih", Local), f("MPI_Win_call_errhandler", "hi", Local),
    f("MPI_Win_create_keyval", "h", Local), f("MPI_Win_delete_attr", "hh", Local),
    f("MPI_Win_free_keyval", "h", Local), f("MPI_Win_get_attr", "hhi", Local), f("MPI_Win_get_name", "hci", Local),
    f("MPI_Win_set_attr", "hh", Local), f("MPI_Win_set_name", "hc", Local), f("MPI_Alloc_mem", "ih", Local),
    f("MPI_Comm_create_errhandler", "h", Local), f("MPI_Comm_get_errhandler", "hh", Local),
    f("MPI_Comm_set_errhandler", "hh", Local), f("MPI_File_create_errhandler", "h", Unsupported(FILES)),
    f("MPI_File_get_errhandler", "hh", Unsupported(FILES)), f("MPI_File_set_errhandler", "hh", Unsupported(FILES)),
    f("MPI_Finalized", "i", Local), f("MPI_Free_mem", "", Local), f("MPI_Get_address", "i", Local),
    f("MPI_Info_create", "h", Local), f("MPI_Info_delete", "hc", Local), f("MPI_Info_dup", "hh", Local),
    f("MPI_Info_free", "h", Local), f("MPI_Info_get", "hcici", Local), f("MPI_Info_get_nkeys", "hi", Local),
    f("MPI_Info_get_nthkey", "hic", Local), f("MPI_Info_get_valuelen", "hcii", Local), f("MPI_Info_set", "hcc", Local),
    f("MPI_Pack_external", "cihiii", Local), f("MPI_Pack_external_size", "cihi", Local),
    f("MPI_Request_get_status", "iis", Local), f("MPI_Type_create_darray", "iiiIBIIbhh", Local),
    f("MPI_Type_create_hindexed", "iIIhh", TypeIndexed), f("MPI_Type_create_hvector", "iiihh", TypeVector),
    f("MPI_Type_create_indexed_block", "iiIhh", TypeVector), f("MPI_Type_create_resized", "hiih", TypeSame),
    f("MPI_Type_create_struct", "iIIHh", TypeStruct), f("MPI_Type_create_subarray", "iIIIbhh", TypeSubarray),
    f("MPI_Type_get_extent", "hii", Local), f("MPI_Type_get_true_extent", "hii", Local),
    f("MPI_Unpack_external", "ciiiih", Local), f("MPI_Win_create_errhandler", "h", Local),
    f("MPI_Win_get_errhandler", "hh", Local), f("MPI_Win_set_errhandler", "hh", Local),
    f("MPI_File_open", "hcbhh", Unsupported(FILES)), f("MPI_File_close", "h", Unsupported(FILES)),
    f("MPI_File_delete", "ch", Unsupported(FILES)), f("MPI_File_set_size", "hl", Unsupported(FILES)),
    f("MPI_File_preallocate", "hl", Unsupported(FILES)), f("MPI_File_get_size", "hl", Unsupported(FILES)),
    f("MPI_File_get_group", "hh", Unsupported(FILES)), f("MPI_File_get_amode", "hb", Unsupported(FILES)),
    f("MPI_File_set_info", "hh", Unsupported(FILES)), f("MPI_File_get_info", "hh", Unsupported(FILES)),
    f("MPI_File_set_view", "hlhhch", Unsupported(FILES)), f("MPI_File_get_view", "hlhhc", Unsupported(FILES)),
    f("MPI_File_read_at", "hlihs", Unsupported(FILES)), f("MPI_File_read_at_all", "hlihs", Unsupported(FILES)),
    f("MPI_File_write_at", "hlihs", Unsupported(FILES)), f("MPI_File_write_at_all", "hlihs", Unsupported(FILES)),
    f("MPI_File_iread_at", "hlihi", Unsupported(FILES)), f("MPI_File_iwrite_at", "hlihi", Unsupported(FILES)),
    f("MPI_File_read", "hihs", Unsupported(FILES)), f("MPI_File_read_all", "hihs", Unsupported(FILES)),
    f("MPI_File_write", "hihs", Unsupported(FILES)), f("MPI_File_write_all", "hihs", Unsupported(FILES)),
    f("MPI_File_iread", "hihi", Unsupported(FILES)), f("MPI_File_iwrite", "hihi", Unsupported(FILES)),
    f("MPI_File_seek", "hlb", Unsupported(FILES)), f("MPI_File_get_position", "hl", Unsupported(FILES)),
    f("MPI_File_get_byte_offset", "hll", Unsupported(FILES)), f("MPI_File_read_shared", "hihs", Unsupported(FILES)),
    f("MPI_File_write_shared", "hihs", Unsupported(FILES)), f("MPI_File_iread_shared", "hihi", Unsupported(FILES)),
    f("MPI_File_iwrite_shared", "hihi", Unsupported(FILES)), f("MPI_File_read_ordered", "hihs", Unsupported(FILES)),
    f("MPI_File_write_ordered", "hihs", Unsupported(FILES)), f("MPI_File_seek_shared", "hlb", Unsupported(FILES)),
    f("MPI_File_get_position_shared", "hl", Unsupported(FILES)), f("MPI_File_read_at_all_begin", "hlih", Unsupported(FILES)),
    f("MPI_File_read_at_all_end", "hs", Unsupported(FILES)), f("MPI_File_write_at_all_begin", "hlih", Unsupported(FILES)),
    f("MPI_File_write_at_all_end", "hs", Unsupported(FILES)), f("MPI_File_read_all_begin", "hih", Unsupported(FILES)),
    f("MPI_File_read_all_end", "hs", Unsupported(FILES)), f("MPI_File_write_all_begin", "hih", Unsupported(FILES)),
    f("MPI_File_write_all_end", "hs", Unsupported(FILES)), f("MPI_File_read_ordered_begin", "hih", Unsupported(FILES)),
    f("MPI_File_read_ordered_end", "hs", Unsupported(FILES)), f("MPI_File_write_ordered_begin", "hih", Unsupported(FILES)),
    f("MPI_File_write_ordered_end", "hs", Unsupported(FILES)), f("MPI_File_get_type_extent", "hhi", Unsupported(FILES)),
    f("MPI_Register_datarep", "c", Unsupported(FILES)), f("MPI_File_set_atomicity", "hi", Unsupported(FILES)),
    f("MPI_File_get_atomicity", "hi", Unsupported(FILES)), f("MPI_File_sync", "h", Unsupported(FILES)),
    f("MPIO_Test", "iis", Unsupported(FILES)), f("MPIO_Wait", "is", Unsupported(FILES)),
    f("MPIO_Testall", "iIis", Unsupported(FILES)), f("MPIO_Waitall", "iIs", Unsupported(FILES)),
    f("MPIO_Testany", "iIiis", Unsupported(FILES)), f("MPIO_Waitany", "iIis", Unsupported(FILES)),
    f("MPIO_Waitsome", "iIiIs", Unsupported(FILES)), f("MPIO_Testsome", "iIiIs", Unsupported(FILES)),
    f("an unknown call", "", Unrecorded), f("Function_enter", "l", Local),
    f("Function_exit", "l", Local),
];
