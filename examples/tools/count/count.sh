#!/bin/sh
# Called as: count.sh --file PATH [--file PATH ...]
while [ "$#" -gt 1 ]; do
    wc -- "$2"
    shift 2
done
