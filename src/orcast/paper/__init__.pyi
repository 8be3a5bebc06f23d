from orcast.paper.conformal import ConformalLevel as ConformalLevel
from orcast.paper.exact import BinaryRoot as BinaryRoot
from orcast.paper.exact import LogitPath as LogitPath
from orcast.paper.exact import TwoCells as TwoCells
from orcast.paper.orca import Orca as Orca
from orcast.paper.partition import PartitionedRecalibrator as PartitionedRecalibrator
from orcast.paper.value_bounds import ValueCheck as ValueCheck
