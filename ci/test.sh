#!/usr/bin/env bash
# What `make test` and `make test-all` run, every part in a process of its own, the arguments going to all: the live
# tests one after the other, the sampled trials last, then what needs Spark and no cluster; beside them what needs
# neither. What is live leaves half of the machine idle: that goes to what is lengthy. DURATIONS=FILE keeps what
# each test took.
set -u
cd "$(dirname "$0")/.."
readonly NOTHING_SELECTED=5
durations=${DURATIONS:-$(mktemp)}
# A trial that the machine made unknown is tried once more; that it was is told.
readonly PYTEST=(.venv/bin/python -m pytest "--durations-file=$durations" --retry-unknown=1 -o tmp_path_retention_count=9)
# What runs beside takes both cores where the live tests leave them, and at the end, when it is alone.
readonly WORKERS=(-n 2 --dist loadfile)
# A session of its own has a share of the processor of its own (autogroup): what needs no cluster gets one as a broker
# does, for beside the harness brokers and members would get next to nothing; what is lengthy gets what all others leave.
readonly YIELDING=(setsid sh -c '{ echo 5 >/proc/self/autogroup; } 2>/dev/null; exec nice -n 5 "$@"' sh)
log=$(mktemp) computed=$(mktemp)
# pytest keeps the folders of the last three runs that it finds in one place: a place of its own for each of ours, kept
# where something failed.
PYTEST_DEBUG_TEMPROOT=$(mktemp -d "${TMPDIR:-/tmp}/kt-XXXXXX")
export PYTEST_DEBUG_TEMPROOT
beside='' computing='' part='' said=1
# Of a whole tier on two warm cores, in seconds; an overrun fails, unless KAFKA_TRIAL_BUDGET=told. What is
# trained beside the tests (Kafka's archives, and Spark's, which each installation has anew) takes minutes, or too long, and
# then whatever starts a JVM is slower: so it comes first.
budget=''
if [ "$*" = "--tier everyday" ]; then
  .venv/bin/kafka-trial doctor --fetch 4.3.1 --fetch 3.9.2 >/dev/null # what is missing is told by the tests that need it
  budget=$((17 * 60)) SECONDS=0
fi
readonly AUTOGROUP=/proc/self/autogroup
nice_before=$(cat "$AUTOGROUP" 2>/dev/null)
trap 'kill "$beside" "$computing" 2>/dev/null; rm -f "$log" "$computed"; tidy; [ -n "${DURATIONS-}" ] || rm -f "$durations"; share "${nice_before##* }"' EXIT

tidy() { # the folders of the tests go, unless somebody may want to look into them
  if [ "$said" = 0 ]; then
    rm -rf "$PYTEST_DEBUG_TEMPROOT"
  else
    echo "the folders of the tests are kept in $PYTEST_DEBUG_TEMPROOT" >&2
  fi
}

share() { # the nice value of this session against those of brokers and members, as kafka_trial/trial/stall_prevention.py has it
  { echo "$1" >"$AUTOGROUP"; } 2>/dev/null || true
}

worse() { # of two exit statuses; a part of which nothing was selected says nothing
  if [ "$1" = "$NOTHING_SELECTED" ]; then
    echo "$2"
  elif [ "$1" = 0 ] && [ "$2" != "$NOTHING_SELECTED" ]; then
    echo "$2"
  else
    echo "$1"
  fi
}

killable() { # a command that ends with this shell
  "$@" &
  part=$!
  wait "$part"
}

aside() { # a command whose output goes into a file; what waits for it ends with the shell that began it
  local into=$1
  shift
  trap '' INT
  trap 'kill "$part" 2>/dev/null; exit 143' TERM
  killable "$@" >"$into" 2>&1
}

share -10
aside "$log" setsid "${PYTEST[@]}" "${WORKERS[@]}" -m "not cluster and not spark and not lengthy" -p no:cacheprovider "$@" &
beside=$!
aside "$computed" "${YIELDING[@]}" "${PYTEST[@]}" "${WORKERS[@]}" -m lengthy -p no:cacheprovider "$@" &
computing=$!
trap 'exit 130' INT
"${PYTEST[@]}" -m cluster "$@"
said=$?
"${PYTEST[@]}" -m "spark and not cluster and not lengthy" "$@"
said=$(worse "$said" $?)
for behind in "$computing" "$beside"; do
  wait "$behind"
  said=$(worse "$said" $?)
done
cat "$computed" "$log"
case " $* " in *" --skip-passed "*) [ "$said" = "$NOTHING_SELECTED" ] && said=0 ;; esac # all had passed before
.venv/bin/python tests/durations.py summarise "$durations" "$SECONDS" $budget || said=$(worse "$said" 1)
exit "$said"
