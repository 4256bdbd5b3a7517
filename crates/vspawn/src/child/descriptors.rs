//! The child's descriptors: places those that it gets, carries out its file actions, and closes the
//! others. The rules of `child/mod.rs` apply.

use std::ffi::CString;
use std::mem::MaybeUninit;

use super::job::{Failure, Job, Step, failed_at};
use crate::error::Stage;
use crate::plan::{Move, NULL_DEVICE, Plan};
use crate::request::Action;
use crate::sys::{Errno, syscall};

/// Puts each descriptor at its target. First copies every source whose number is also a target to
/// another number, then copies each source to its target. This order handles swaps and cycles: no
/// source is overwritten before it has been copied.
pub(super) unsafe fn place_descriptors(job: &Job, plan: &Plan) -> Step {
    // SAFETY: the moves are in the job's own workspace; the system calls get integers and a
    // constant string.
    unsafe {
        let moves = std::slice::from_raw_parts_mut(job.moves, job.move_count);
        let above_targets = plan.highest_target.wrapping_add(1);
        let failed = |index, stage| move |errno| Failure { stage, index, errno };
        let mut index = 0usize;
        while let Some(Move { source, is_source_a_target, .. }) = moves.get(index).copied() {
            if is_source_a_target {
                let copy = copy_to_non_target(source, above_targets, moves).map_err(failed(index, Stage::Dup))?;
                if let Some(a_move) = moves.get_mut(index) {
                    a_move.source = copy;
                }
            }
            index = index.wrapping_add(1);
        }
        for (index, a_move) in moves.iter().enumerate() {
            let Move { source, target, .. } = *a_move;
            if source == NULL_DEVICE {
                open_null(target).map_err(failed(index, Stage::OpenNull))?;
            } else if source == target {
                syscall!(SYS_fcntl, target, libc::F_SETFD, 0).map_err(failed(index, Stage::Dup))?;
            } else {
                syscall!(SYS_dup3, source, target, 0).map_err(failed(index, Stage::Dup))?;
            }
        }
    }
    Ok(())
}

/// Copies a descriptor to a number that is not a target: above all targets or, if RLIMIT_NOFILE
/// leaves no number there, in any gap between them. The exec closes the copies.
unsafe fn copy_to_non_target(source: i32, above_targets: i32, moves: &[Move]) -> Result<i32, Errno> {
    // SAFETY: integers.
    unsafe {
        if let Ok(fd) = syscall!(SYS_fcntl, source, libc::F_DUPFD_CLOEXEC, above_targets) {
            return Ok(fd as i32);
        }
        let mut from = 0i32;
        loop {
            let fd = syscall!(SYS_fcntl, source, libc::F_DUPFD_CLOEXEC, from)? as i32;
            if moves.iter().all(|a_move| a_move.target != fd) {
                return Ok(fd);
            }
            let _ = syscall!(SYS_close, fd);
            from = fd.wrapping_add(1);
        }
    }
}

unsafe fn open_null(target: i32) -> Result<(), Errno> {
    // SAFETY: a constant string and integers.
    unsafe {
        let fd = syscall!(SYS_openat, libc::AT_FDCWD, c"/dev/null".as_ptr(), libc::O_RDWR, 0)? as i32;
        if fd != target {
            syscall!(SYS_dup3, fd, target, 0)?;
            let _ = syscall!(SYS_close, fd);
        }
    }
    Ok(())
}

/// Carries out the actions, in the child.
pub(super) unsafe fn carry_out(actions: &[Action]) -> Step {
    for (index, action) in actions.iter().enumerate() {
        // SAFETY: integers, and strings that the plan holds.
        unsafe { carry_out_one(action) }.map_err(|errno| Failure { stage: Stage::FileAction, index, errno })?;
    }
    Ok(())
}

unsafe fn carry_out_one(action: &Action) -> Result<(), Errno> {
    // SAFETY: as above.
    unsafe {
        match action {
            Action::Open { target, path, flags, mode } => return open(*target, path, *flags, *mode),
            // EBADF is ignored: the descriptor was already closed.
            Action::Close(fd) => drop(syscall!(SYS_close, *fd)),
            Action::CloseFrom(first) => return close_range(*first as u32, u32::MAX, 0),
            Action::Dup { source, target } if source == target => {
                let flags = syscall!(SYS_fcntl, *source, libc::F_GETFD)?;
                syscall!(SYS_fcntl, *source, libc::F_SETFD, flags & !(libc::FD_CLOEXEC as usize))?;
            }
            Action::Dup { source, target } => drop(syscall!(SYS_dup3, *source, *target, 0)?),
            Action::ChangeDirectory(path) => drop(syscall!(SYS_chdir, path.as_ptr())?),
            Action::ChangeDirectoryTo(fd) => drop(syscall!(SYS_fchdir, *fd)?),
            Action::Foreground(fd) => {
                // In a background group, SIGTTOU would stop the child here, but all signals are
                // blocked.
                let group = syscall!(SYS_getpgid, 0)? as i32;
                syscall!(SYS_ioctl, *fd, libc::TIOCSPGRP, &raw const group)?;
            }
        }
    }
    Ok(())
}

/// Opens a file as descriptor `target`. Closes the target first, as POSIX requires, so that even a
/// full table of descriptors has room for the file.
unsafe fn open(target: i32, path: &CString, flags: i32, mode: u32) -> Result<(), Errno> {
    // SAFETY: a string that the plan holds, and integers.
    unsafe {
        let _ = syscall!(SYS_close, target);
        let fd = syscall!(SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, mode)? as i32;
        if fd != target {
            syscall!(SYS_dup3, fd, target, flags & libc::O_CLOEXEC)?;
            let _ = syscall!(SYS_close, fd);
        }
    }
    Ok(())
}

/// Closes the descriptors between those that stay open, and all above them. If the child has
/// unshared its table (`unshare_above`), the descriptors above that number are left alone: they
/// were opened after that, and are close-on-exec.
pub(super) unsafe fn close_others(job: &Job, plan: &Plan) -> Step {
    let last = job.unshare_above.map_or(u32::MAX, |above| above as u32);
    let mut next = 0u32;
    for &kept in &plan.kept_descriptors {
        let kept = kept as u32;
        if kept > next {
            // SAFETY: integers.
            unsafe { close_range(next, kept.wrapping_sub(1), job.close_flags) }
                .map_err(failed_at(Stage::CloseOthers))?;
        }
        next = kept.wrapping_add(1);
    }
    if next > last {
        return Ok(());
    }
    // SAFETY: integers.
    unsafe { close_range(next, last, job.close_flags) }.map_err(failed_at(Stage::CloseOthers))
}

/// Closes a range of descriptors by `close_range`. Without it (before Linux 5.9, or under an old
/// seccomp filter), closes those that `/proc/self/fd` lists.
unsafe fn close_range(first: u32, last: u32, flags: u32) -> Result<(), Errno> {
    // SAFETY: integers.
    match unsafe { syscall!(SYS_close_range, first, last, flags) } {
        // EINVAL: CLOSE_RANGE_CLOEXEC before Linux 5.11.
        // SAFETY: as above.
        Err(libc::ENOSYS | libc::EPERM | libc::EINVAL) => unsafe { close_range_by_proc(first, last, flags) },
        result => result.map(drop),
    }
}

unsafe fn close_range_by_proc(first: u32, last: u32, close_flags: u32) -> Result<(), Errno> {
    // SAFETY: the kernel writes at most the buffer's size: whole entries, each with its length.
    unsafe {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        let directory = syscall!(SYS_openat, libc::AT_FDCWD, c"/proc/self/fd".as_ptr(), flags, 0)?;
        // Not zeroed: that could call libc's memset, and thereby the dynamic loader.
        let mut buffer = MaybeUninit::<[u64; 128]>::uninit();
        loop {
            let bytes = syscall!(SYS_getdents64, directory, buffer.as_mut_ptr(), size_of::<[u64; 128]>());
            let end = match bytes {
                Ok(0) => break,
                Ok(bytes) => buffer.as_ptr().cast::<u8>().add(bytes),
                Err(errno) => {
                    let _ = syscall!(SYS_close, directory);
                    return Err(errno);
                }
            };
            let mut entry = buffer.as_ptr().cast::<u8>();
            while entry < end {
                // struct linux_dirent64: inode and offset of 8 bytes each, length of 2, type of 1,
                // then the name.
                let length = entry.add(16).cast::<u16>().read_unaligned();
                if let Some(fd) = parse_number(entry.add(19))
                    && (first..=last).contains(&fd)
                    && fd as usize != directory
                {
                    let _ = match close_flags {
                        0 => syscall!(SYS_close, fd),
                        _ => syscall!(SYS_fcntl, fd, libc::F_SETFD, libc::FD_CLOEXEC),
                    };
                }
                entry = entry.add(length as usize);
            }
        }
        let _ = syscall!(SYS_close, directory);
    }
    Ok(())
}

/// Parses a decimal number that ends with NUL. Returns `None` for other names.
unsafe fn parse_number(mut digits: *const u8) -> Option<u32> {
    let mut value = 0u32;
    // SAFETY: the name ends with NUL.
    unsafe {
        while *digits != 0 {
            let digit = (*digits).wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            value = value.wrapping_mul(10).wrapping_add(u32::from(digit));
            digits = digits.add(1);
        }
    }
    Some(value)
}
