#!/bin/sh
# SPDX-License-Identifier: MIT
# Oclgrind looks for data races in every kernel, in both shapes, in ordinary launches: each op with NODES of its nodes,
# in all ways of at most 40 rows that `tfm check-backend` runs them. Takes an hour, so it can be taken up again.
# `tests/portability/table.sh BUILD oclgrind-wide` fetches Oclgrind.
set -u
usage='usage: tests/portability/races.sh BUILD [NODES [OP...]]    BUILD: a built tree; NODES: of each op (3); OP: all

Prints a line for each op and shape. Exit code 1 when there is a race, a failed case or an op that did not run.
SHAPES=group or wide: one shape.'
case ${1-} in '' | -h | --help) echo "$usage"; exit 0 ;; esac
source_tree=$(cd "$(dirname "$0")/../.." && pwd) || exit 2
build=$(cd "$1" && pwd) || exit 2
shift
. "$source_tree/tests/portability/oclgrind.sh"
have_oclgrind || { echo "no Oclgrind in $work: tests/portability/table.sh $build oclgrind-wide fetches it" >&2; exit 2; }
every_op races "$@"
