! The Fortran interface of libfairlane-progress: compile it with the program's compiler, and link with the library.
!
!     use fairlane_progress
!     do step = 1, steps
!        ...
!        call fairlane_mark_progress()
!     end do
module fairlane_progress
  use, intrinsic :: iso_c_binding, only: c_double, c_int
  implicit none
  private
  public :: fairlane_progress_open, fairlane_mark_progress, fairlane_mark_progress_fraction, fairlane_progress_close

  interface
    integer(c_int) function fairlane_progress_open() bind(c, name="fairlane_progress_open")
      import :: c_int
    end function fairlane_progress_open

    subroutine fairlane_mark_progress() bind(c, name="fairlane_mark_progress")
    end subroutine fairlane_mark_progress

    subroutine fairlane_mark_progress_fraction(fraction) bind(c, name="fairlane_mark_progress_fraction")
      import :: c_double
      real(c_double), value :: fraction
    end subroutine fairlane_mark_progress_fraction

    subroutine fairlane_progress_close() bind(c, name="fairlane_progress_close")
    end subroutine fairlane_progress_close
  end interface
end module fairlane_progress
