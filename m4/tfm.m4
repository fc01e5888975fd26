# SPDX-License-Identifier: MIT
# The few checks that configure.ac repeats.

# TFM_PACKAGE(WHAT, TEST, DEBIAN-PACKAGE)
# Stops with the name of the Debian package when TEST fails.
AC_DEFUN([TFM_PACKAGE],
[AS_IF([$2], [], [AC_MSG_ERROR([$1 not found: install the Debian package $3])])])

# TFM_MODULE(VARIABLE-PREFIX, PKG-CONFIG-MODULE, DEBIAN-PACKAGE, [OPTION-TO-DO-WITHOUT])
# PKG_CHECK_MODULES whose failure names the Debian package.
AC_DEFUN([TFM_MODULE],
[PKG_CHECK_MODULES([$1], [$2], [],
    [AC_MSG_ERROR([$2 not found: install the Debian package $3]m4_ifval([$4], [[, or configure $4]]))])])

# TFM_COMPILER_FLAG(FLAG, VARIABLE)
# Appends FLAG to VARIABLE if the compiler takes it without a warning.
AC_DEFUN([TFM_COMPILER_FLAG],
[AC_MSG_CHECKING([whether $CC accepts $1])
tfm_save_CFLAGS=$CFLAGS
CFLAGS="$CFLAGS -Werror $1"
AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
    [AC_MSG_RESULT([yes])
     AS_VAR_APPEND([$2], [" $1"])],
    [AC_MSG_RESULT([no])])
CFLAGS=$tfm_save_CFLAGS])

# TFM_LINKER_FLAG(FLAG, VARIABLE)
# Appends FLAG to VARIABLE if the linker takes it.
AC_DEFUN([TFM_LINKER_FLAG],
[AC_MSG_CHECKING([whether the linker accepts $1])
tfm_save_LDFLAGS=$LDFLAGS
LDFLAGS="$LDFLAGS $1"
AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
    [AC_MSG_RESULT([yes])
     AS_VAR_APPEND([$2], [" $1"])],
    [AC_MSG_RESULT([no])])
LDFLAGS=$tfm_save_LDFLAGS])
