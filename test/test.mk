# decoder: walker and formats
$(B)/test/unit_walk $(B)/test/unit_format: $(B)/test/%: test/%.c $(B)/libptrace_decode.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Idecoder -o $@ $< $(B)/libptrace_decode.a $(DEC_LIBS)

# semantics IR: unit test, differential test against the processor
SEM_OBJ := $(call obj,$(wildcard analyzer/sem_*.c))
$(B)/test/unit_sem: test/unit_sem.c $(SEM_OBJ)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -Ianalyzer $(LDFLAGS) -o $@ $(filter %.c %.o,$^) -lZydis
$(B)/test/semtest: $(wildcard test/semtest*.c) test/semtest.h $(SEM_OBJ)
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(CFLAGS_ALL)) -Ianalyzer $(LDFLAGS) -o $@ $(filter %.c %.o,$^) -lZydis
check-programs: $(B)/test/unit_sem $(B)/test/semtest

# planner: golden plans of small functions; the decoder's program against the full effect
$(B)/test/unit_plan $(B)/test/plan_sim: $(B)/test/%: test/%.c $(AN_OBJ)
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(CFLAGS_ALL)) -Ianalyzer $(LDFLAGS) -o $@ $(filter %.c %.o,$^) -lZydis -lelf -lxxhash -lpthread
check-programs: $(B)/test/unit_plan $(B)/test/plan_sim
