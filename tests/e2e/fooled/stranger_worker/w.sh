#!/bin/sh
touch HERE/ran
exit 64
