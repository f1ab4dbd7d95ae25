from fairlane.pattern.traffic import *
