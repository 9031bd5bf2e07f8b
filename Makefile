# SPDX-License-Identifier: GPL-2.0-only
# Builds the plugin: alone, or as plugins/amdgpu in CRIU's tree, whose targets and
# variables it keeps. Tests, the demonstration and the test machine: tests/tests.mk.

PLUGIN_NAME := amdgpu_plugin
PLUGIN_SOBJ := $(PLUGIN_NAME).so
TOOL := amdgpu-checkpoint
PAGE := criu-plugin-amdgpu
UNIT := $(TOOL)-follow.service

CC ?= gcc
PKG_CONFIG ?= pkg-config
# Where the criu of this machine looks; without one, the directory that the distribution has for it.
PLUGINDIR ?= $(or $(shell criu --help 2>/dev/null | sed -n 's,.*plugin directory (by default \(.*[^/]\)/*).*,\1,p'),\
	$(wildcard /usr/lib64/criu),/usr/lib/criu)
BINDIR ?= /usr/bin
COMPLETIONDIR ?= /usr/share/bash-completion/completions
ZSHDIR ?= /usr/share/zsh/vendor-completions
FISHDIR ?= /usr/share/fish/vendor_completions.d
MANDIR ?= /usr/share/man
SYSCONFDIR ?= /etc
UNITDIR ?= /usr/lib/systemd/system
BUILD ?= build
# Where the project is and takes reports. When set, --help, the pages and the packages say it.
HOMEPAGE ?=
# 1: a warning of the compiler is an error, as in CRIU's tree and in continuous integration.
WERROR ?= 0
# CRIU's build sets CONFIG_AMDGPU; on its own the plugin is what is wanted.
CONFIG_AMDGPU ?= y

PLUGIN_LIBS := libdrm_amdgpu libdrm libprotobuf-c
CFLAGS ?= -O2 -g
# Expanded when used: on a bare machine, "make check" installs pkg-config first.
PLUGIN_CFLAGS = -std=gnu11 -Wall -Wextra $(if $(filter 1,$(WERROR)),-Werror) -Wshadow -fPIC -fvisibility=hidden -pthread \
	$(shell $(PKG_CONFIG) --cflags $(PLUGIN_LIBS)) -iquote . -I$(BUILD)/proto
# CRIU's build defines it; the sources do so themselves, where they need it.
PLUGIN_UNDEFS := -U_GNU_SOURCE
PLUGIN_LDFLAGS := -shared -pthread -Wl,-z,defs -Wl,--version-script=amdgpu_plugin.map
PLUGIN_LDLIBS = $(shell $(PKG_CONFIG) --libs $(PLUGIN_LIBS)) -ldl

# The commit, with "-dirty" for a source that was changed. Archives that git makes have it in a file.
SOURCE_ID := $(or $(shell sed '/Format/d' source-id 2>/dev/null),$(shell git describe --always --dirty --exclude='*' 2>/dev/null))

PLUGIN_FOLDERS := checkpoint suspend share pages match image stopped kernel host content
PLUGIN_SOURCES := $(wildcard amdgpu_plugin*.c $(PLUGIN_FOLDERS:%=%/*.c))
PLUGIN_OBJECTS := $(PLUGIN_SOURCES:%.c=$(BUILD)/plugin/%.o) $(BUILD)/plugin/criu-amdgpu.pb-c.o
PROTO_FILES := $(BUILD)/proto/criu-amdgpu.pb-c.c $(BUILD)/proto/criu-amdgpu.pb-c.h

# The command takes of the plugin's objects what it needs, and does not depend on criu. Archives are read by libarchive, which
# the plugin does not need.
TOOL_FOLDERS := tool
TOOL_OBJECTS := $(patsubst %.c,$(BUILD)/plugin/%.o,$(wildcard $(TOOL_FOLDERS:%=%/*.c)))
TOOL_PARTS := $(BUILD)/plugin/parts.a
TOOL_LIBS := libdrm_amdgpu libprotobuf-c libarchive
TOOL_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(TOOL_LIBS)) $(if $(HOMEPAGE),-DHOMEPAGE='"$(HOMEPAGE)"')
TOOL_LDLIBS = $(shell $(PKG_CONFIG) --libs $(TOOL_LIBS)) -ldl

# criu's own packages have pages amdgpu_plugin and criu-amdgpu-plugin. Pages are built where one of the tools is there, and installed when they were built.
MAN_PAGES := $(addprefix $(BUILD)/man/,$(PAGE).7 $(TOOL).8 $(TOOL)-json.5)
ASCIIDOCTOR ?= $(shell command -v asciidoctor)
A2X ?= $(shell command -v a2x)

ifeq ($(CONFIG_AMDGPU),y)
all: $(PLUGIN_SOBJ) $(BUILD)/$(TOOL) $(if $(ASCIIDOCTOR)$(A2X),man)
else
all:
endif
.PHONY: all
.DEFAULT_GOAL := all

$(PLUGIN_SOBJ): $(PLUGIN_OBJECTS) amdgpu_plugin.map
	$(CC) $(PLUGIN_LDFLAGS) $(LDFLAGS) -o $@ $(PLUGIN_OBJECTS) $(PLUGIN_LDLIBS)

$(BUILD)/$(TOOL): $(TOOL_OBJECTS) $(TOOL_PARTS)
	$(CC) -pthread $(LDFLAGS) -o $@ $^ $(TOOL_LDLIBS)

$(TOOL_PARTS): $(PLUGIN_OBJECTS)
	rm -f $@
	$(AR) rcs $@ $^

$(TOOL_OBJECTS): PLUGIN_CFLAGS += $(TOOL_CFLAGS)

$(BUILD)/plugin/%.o: %.c $(PROTO_FILES) | $(PLUGIN_FOLDERS:%=$(BUILD)/plugin/%) $(TOOL_FOLDERS:%=$(BUILD)/plugin/%)
	$(CC) $(PLUGIN_CFLAGS) $(CFLAGS) $(PLUGIN_UNDEFS) -MMD -MP -c -o $@ $<

# Changes only with the commit.
$(BUILD)/source-id: always | $(BUILD)/plugin
	@echo '$(SOURCE_ID)' | cmp -s - $@ || echo '$(SOURCE_ID)' >$@
$(BUILD)/plugin/amdgpu_plugin_version.o: PLUGIN_CFLAGS += -DPLUGIN_SOURCE='"$(SOURCE_ID:%=+%)"'
$(BUILD)/plugin/amdgpu_plugin_version.o: $(BUILD)/source-id
source-id-of-archive:
	@echo '$(SOURCE_ID)'
.PHONY: always source-id-of-archive

$(BUILD)/plugin/criu-amdgpu.pb-c.o: $(PROTO_FILES) | $(BUILD)/plugin
	$(CC) $(PLUGIN_CFLAGS) $(CFLAGS) -c -o $@ $<

$(PROTO_FILES) &: criu-amdgpu.proto | $(BUILD)/proto
	protoc-c --c_out=$(BUILD)/proto $<

man: $(MAN_PAGES)
.PHONY: man

$(BUILD)/man/$(PAGE).7: $(PLUGIN_NAME).txt
$(BUILD)/man/$(TOOL).8: tool/$(TOOL).txt
$(BUILD)/man/$(TOOL)-json.5: tool/$(TOOL)-json.txt
# The version is at the foot of a page, and the name of the manual at its head.
MAN = $(if $(ASCIIDOCTOR),$(ASCIIDOCTOR) -b manpage -d manpage -o $@,$(A2X) -d manpage -f manpage -D $(@D)) \
	-a mansource='$(PAGE) $(VERSION)' -a manmanual='AMD GPU plugin for CRIU' $(if $(HOMEPAGE),-a homepage=$(HOMEPAGE)) $<
$(MAN_PAGES): | $(BUILD)/man
	$(MAN)

$(BUILD)/plugin $(PLUGIN_FOLDERS:%=$(BUILD)/plugin/%) $(TOOL_FOLDERS:%=$(BUILD)/plugin/%) $(BUILD)/proto $(BUILD)/man:
	mkdir -p $@

-include $(PLUGIN_OBJECTS:.o=.d) $(TOOL_OBJECTS:.o=.d)

clean:
	rm -rf $(BUILD) $(PLUGIN_SOBJ) test_topology_remap
.PHONY: clean

mrproper: clean
.PHONY: mrproper

install: all
ifeq ($(CONFIG_AMDGPU),y)
	@echo "$(PLUGIN_SOBJ) goes to $(DESTDIR)$(PLUGINDIR)"
	mkdir -p $(DESTDIR)$(PLUGINDIR)
	install -m 755 $(PLUGIN_SOBJ) $(DESTDIR)$(PLUGINDIR)
	install -D -m 755 -t $(DESTDIR)$(BINDIR) $(BUILD)/$(TOOL)
	install -D -m 644 tool/$(TOOL).bash $(DESTDIR)$(COMPLETIONDIR)/$(TOOL)
	install -D -m 644 tool/$(TOOL).zsh $(DESTDIR)$(ZSHDIR)/_$(TOOL)
	install -D -m 644 -t $(DESTDIR)$(FISHDIR) tool/$(TOOL).fish
	[ -e $(DESTDIR)$(SYSCONFDIR)/criu/amdgpu_plugin.conf ] || \
		install -D -m 644 -t $(DESTDIR)$(SYSCONFDIR)/criu amdgpu_plugin.conf
	mkdir -p $(DESTDIR)$(UNITDIR)
	sed 's,/usr/bin,$(BINDIR),' tool/$(UNIT) >$(DESTDIR)$(UNITDIR)/$(UNIT)
	for page in $(MAN_PAGES); do \
		if [ -e $$page ]; then install -D -m 644 -t $(DESTDIR)$(MANDIR)/man$${page##*.} $$page; fi; done
endif
.PHONY: install

uninstall:
ifeq ($(CONFIG_AMDGPU),y)
	rm -f $(DESTDIR)$(PLUGINDIR)/$(PLUGIN_SOBJ) $(DESTDIR)$(BINDIR)/$(TOOL) \
		$(DESTDIR)$(COMPLETIONDIR)/$(TOOL) $(DESTDIR)$(ZSHDIR)/_$(TOOL) $(DESTDIR)$(FISHDIR)/$(TOOL).fish \
		$(foreach page,$(notdir $(MAN_PAGES)),$(DESTDIR)$(MANDIR)/man$(subst .,,$(suffix $(page)))/$(page)) \
		$(DESTDIR)$(UNITDIR)/$(UNIT)
	! cmp -s amdgpu_plugin.conf $(DESTDIR)$(SYSCONFDIR)/criu/amdgpu_plugin.conf || rm $(DESTDIR)$(SYSCONFDIR)/criu/amdgpu_plugin.conf
endif
.PHONY: uninstall

homepage:
	@echo '$(or $(HOMEPAGE),this copy has no address: it is where you got the copy)'
.PHONY: homepage

# The archive of a release, of the last commit. It has the address, so that all that is built from it has it.
VERSION := $(shell sed -n 's/^\#define NUMBER "\(.*\)"/\1/p' amdgpu_plugin_version.c)
DIST := criu-plugin-amdgpu-$(VERSION)
dist:
	rm -rf $(BUILD)/dist
	mkdir -p $(BUILD)/dist
	git archive --prefix=$(DIST)/ HEAD | tar -x -C $(BUILD)/dist
	sed -i 's,^HOMEPAGE ?=.*,HOMEPAGE ?= $(HOMEPAGE),' $(BUILD)/dist/$(DIST)/Makefile
	$(if $(HOMEPAGE),printf 'version=4\n$(HOMEPAGE)/tags .*/v?(\d\S*)\.tar\.gz\n' >$(BUILD)/dist/$(DIST)/debian/watch)
	tar -C $(BUILD)/dist --sort=name --owner=0 --group=0 --mtime=@$$(git log -1 --format=%ct) -c $(DIST) | gzip -n >$(BUILD)/dist/$(DIST).tar.gz
	rm -r $(BUILD)/dist/$(DIST)
	@echo $(BUILD)/dist/$(DIST).tar.gz
.PHONY: dist

# Not there when only the plugin was laid into another tree.
-include tests/hardware/hardware.mk tests/tests.mk
