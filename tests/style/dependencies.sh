#!/usr/bin/env bash
# Dependencies point down: core <- autograd <- nn <- optim, models <- cli; backends and data know
# core only. A directory that includes another's header which is not listed here fails.
. "$(dirname "$0")/common.sh"

allowed() {
  case "$1" in
    core) echo core ;;
    autograd) echo core autograd ;;
    backends) echo core backends ;;
    data) echo core data ;;
    nn) echo core autograd nn ;;
    optim) echo core autograd nn optim ;;
    models) echo core autograd nn optim data models ;;
    *) echo ;;
  esac
}

layers="core autograd backends data nn optim models"
for layer in $layers; do
  others=$(for other in $layers cli tests bench examples; do
    case " $(allowed "$layer") " in *" $other "*) ;; *) echo "$other" ;; esac
  done | paste -sd'|')
  files=$(project_files "$layer/*.h" "$layer/*.cpp" "$layer/*.cu" "$layer/*.cuh")
  [ -n "$files" ] || continue
  found=$(printf '%s\n' "$files" | xargs grep -nHE "^ *# *include *[<\"]($others)/" || true)
  report "$found" "$layer may include only: $(allowed "$layer")"
done

# One backend never reaches into another; what they share is in core.
for backend in reference meta cpu; do
  files=$(project_files "backends/$backend/*.h" "backends/$backend/*.cpp")
  [ -n "$files" ] || continue
  found=$(printf '%s\n' "$files" | xargs grep -nHE '^ *# *include *"backends/' |
    grep -v "include *\"backends/$backend/" || true)
  report "$found" "backends/$backend may include only core and itself"
done
verdict
