/* The progress of a process: how many iterations it has made, in a page of shared memory that fairlane's agent reads.
 *
 *     for (step = 0; step < steps; step++) {
 *         ...
 *         fairlane_mark_progress();
 *     }
 *
 * A mark is a relaxed atomic increment and a read of the coarse clock. All functions may be called from any thread, but
 * not from a signal handler. Without a place for the page, a program runs on unmarked; rank 0 reports why, once.
 *
 * FAIRLANE_PROGRESS_DIR is the directory of the pages, /dev/shm/fairlane-UID by default; FAIRLANE_JOB and FAIRLANE_RANK
 * replace the job and the rank that the launcher has set. */
#ifndef FAIRLANE_PROGRESS_H
#define FAIRLANE_PROGRESS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the page of this process unless there is one; the first mark does so too. Returns 0, or the errno of a failure. */
int fairlane_progress_open(void);

/* One more iteration is complete. */
void fairlane_mark_progress(void);

/* This share of the current iteration is complete, from 0 to less than 1; the next mark sets it to 0. */
void fairlane_mark_progress_fraction(double fraction);

/* Removes the page, as the end of the process does. Later marks count nowhere until the next fairlane_progress_open. */
void fairlane_progress_close(void);

#ifdef __cplusplus
}
#endif
#endif
