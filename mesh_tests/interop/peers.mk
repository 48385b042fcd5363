# Brings the brokers and clients of others to .peers: `make peers` (which installs the Debian packages first).

SHELL := /bin/bash
HERE := mesh_tests/interop
TO := .peers
ARTEMIS := 2.56.0
EXAMPLES := /usr/share/proton/examples
AZURE := 7.15.0
# go-amqp asks for Go 1.25, which Debian 12 has not: its client is left out where there is none.
AXE := 4.11.0
GO := $(firstword $(wildcard /usr/local/go/bin/go) $(shell command -v go))
HAS_GO := $(if $(GO),$(shell $(GO) version | grep -Eq 'go1\.(2[5-9]|[3-9][0-9])' && echo yes))
C := $(addprefix $(TO)/proton_c/,send receive)
CPP := $(addprefix $(TO)/proton_cpp/,simple_send simple_recv client server reconnect_client)

.PHONY: all
all: $(TO)/rhea/node_modules/rhea/package.json $(TO)/jms/classes/JmsClient.class $(TO)/artemis/bin/artemis $(C) $(CPP)
all: $(TO)/axe/node_modules/axe-core/axe.min.js
all: $(TO)/azure/done $(if $(HAS_GO),$(TO)/go_amqp/client $(TO)/go_amqp/example,no_go)

.PHONY: no_go
no_go:
	@echo 'go-amqp is left out: its client needs Go 1.25 or newer, in the path or in /usr/local/go'

$(TO)/go_amqp/client: $(wildcard $(HERE)/clients/go_client/*)
	mkdir -p $(@D)
	cd $(HERE)/clients/go_client && $(GO) build -o $(abspath $@) .

$(TO)/go_amqp/example: $(wildcard examples/go/*)
	mkdir -p $(@D)
	cd examples/go && $(GO) build -o $(abspath $@) .

$(TO)/azure/done: $(HERE)/peers.mk
	rm -rf $(@D)
	python3 -m venv $(@D)
	$(@D)/bin/pip install --quiet azure-servicebus==$(AZURE)
	touch $@

$(TO)/rhea/node_modules/rhea/package.json: $(HERE)/clients/package.json
	mkdir -p $(TO)/rhea
	cp $< $(TO)/rhea/
	npm install --prefix $(TO)/rhea --no-package-lock --no-audit --no-fund --silent
	touch $@

# Looks for barriers in the pages of the console; MPL, and in no wheel.
$(TO)/axe/node_modules/axe-core/axe.min.js: $(HERE)/peers.mk
	mkdir -p $(TO)/axe
	npm install --prefix $(TO)/axe --no-package-lock --no-audit --no-fund --silent axe-core@$(AXE)
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
