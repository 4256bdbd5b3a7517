# Two chains of targets for `make -j2`: one of long computations, and one of short recipes, which ends much earlier. `names` is the recipe of the short chain.
.PHONY: all long short $(foreach n,1 2 3 4 5 6,long$n short$n)
all: long short
long: long6
short: short6
long1:; @./work 1 200
long2: long1; @./work 2 200
long3: long2; @./work 3 200
long4: long3; @./work 4 200
long5: long4; @./work 5 200
long6: long5; @./work 6 200
short1:; @$(names)
short2: short1; @$(names)
short3: short2; @$(names)
short4: short3; @$(names)
short5: short4; @$(names)
short6: short5; @$(names)
