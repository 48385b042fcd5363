# Brings the brokers and clients of others to .peers: `make peers` (which installs the Debian packages first).

SHELL := /bin/bash
HERE := mesh_tests/interop
TO := .peers
ARTEMIS := 2.56.0
EXAMPLES := /usr/share/proton/examples
C := $(addprefix $(TO)/proton_c/,send receive)
CPP := $(addprefix $(TO)/proton_cpp/,simple_send simple_recv client server reconnect_client)

.PHONY: all
all: $(TO)/rhea/node_modules/rhea/package.json $(TO)/jms/classes/JmsClient.class $(TO)/artemis/bin/artemis $(C) $(CPP)

$(TO)/rhea/node_modules/rhea/package.json: $(HERE)/clients/package.json
	mkdir -p $(TO)/rhea
	cp $< $(TO)/rhea/
	npm install --prefix $(TO)/rhea --no-package-lock --no-audit --no-fund --silent
	touch $@

$(TO)/jms/lib/done: $(HERE)/clients/pom.xml
	mvn --quiet --batch-mode -f $< dependency:copy-dependencies -DoutputDirectory=$(abspath $(@D))
	touch $@

$(TO)/jms/classes/JmsClient.class: $(HERE)/clients/JmsClient.java $(TO)/jms/lib/done
	javac -Xlint:all,-processing -cp '$(TO)/jms/lib/*' -d $(@D) $<

$(TO)/artemis/bin/artemis: $(HERE)/peers.mk
	mvn --quiet --batch-mode -f $(HERE)/clients/pom.xml dependency:copy \
	    -Dartifact=org.apache.activemq:apache-artemis:$(ARTEMIS):tar.gz:bin -DoutputDirectory=$(abspath $(TO))
	rm -rf $(TO)/artemis && mkdir $(TO)/artemis
	tar -xzf $(TO)/apache-artemis-$(ARTEMIS)-bin.tar.gz -C $(TO)/artemis --strip-components=1
	rm $(TO)/apache-artemis-$(ARTEMIS)-bin.tar.gz
	touch $@

$(TO)/proton_c/%: $(EXAMPLES)/c/%.c
	mkdir -p $(@D)
	cc -o $@ $< -lqpid-proton

$(TO)/proton_cpp/%: $(EXAMPLES)/cpp/%.cpp
	mkdir -p $(@D)
	c++ -o $@ $< -lqpid-proton-cpp -pthread
