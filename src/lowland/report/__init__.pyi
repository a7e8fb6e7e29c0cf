"""The public names, for editors and type checkers; written by docs/make_stub.py."""

from lowland.report.advice import Advice as Advice
from lowland.report.advice import advise as advise
from lowland.report.foreign import make_report as make_report
from lowland.report.page import render as render
from lowland.report.page import write_report as write_report
from lowland.report.summary import Card as Card
from lowland.report.summary import Input as Input
from lowland.report.summary import Map as Map
from lowland.report.summary import Measure as Measure
from lowland.report.summary import Summary as Summary
