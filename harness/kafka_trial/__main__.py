"""`python -m kafka_trial` is the command `kafka-trial`."""

import sys

from kafka_trial.cli import main

sys.exit(main())
