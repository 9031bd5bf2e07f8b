# SPDX-License-Identifier: GPL-2.0-only
# What the edits of the driver have in common: edit FILE, sub { ... } gives the file's text as $_ and writes what that
# has become. A file in which nothing changes is an error: the release is another one.
use strict;
use warnings;

sub edit {
	my ($file, $change) = @_;
	my $before = do { local (@ARGV, $/) = ($file); <> };

	local $_ = $before;
	$change->();
	die "$file: there is nothing to edit: is this release a sound one, or too different?\n" if $_ eq $before;
	open(my $out, '>', $file) or die "$file: $!\n";
	print $out $_;
	close($out) or die "$file: $!\n";
}

1;
