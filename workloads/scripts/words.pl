#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# words.pl FILE LINES - count words, rewrite lines with regular expressions,
# sort, format, call closures.
use strict;
use warnings;

my ($file, $lines) = @ARGV;
defined $lines or die "usage: words.pl FILE LINES\n";
my (%count, %by_length, $sum);
my @rules = map { my ($from, $to) = @$_; sub { $_[0] =~ s/$from/$to/g } }
	([ 'ta(\w)', 't$1' ], [ '(?<=\s)(\w)(\w+)', '<>' ], [ '[aeiou]{2,}', '-' ]);

open(my $in, '<', $file) or die "words.pl: cannot open $file: $!\n";
while (my $line = <$in>) {
	last if $. > $lines;
	chomp $line;
	for my $word (split /[\s,.]+/, lc $line) {
		next unless length $word;
		$count{$word}++;
		push @{ $by_length{ length $word } }, $word if $count{$word} == 1;
	}
	$_->($line) for @rules;
	$sum += unpack('%32C*', $line);
	$sum ^= $1 * 7 if $line =~ /((\d+))/;
}
close $in;

my @top = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
printf "%-20s %6d\n", $_, $count{$_} for @top[0 .. 19];
for my $length (sort { $a <=> $b } keys %by_length) {
	my @words = sort @{ $by_length{$length} };
	print join(' ', $length, scalar @words, map { ucfirst reverse } @words[0, -1]), "\n";
}
print "$sum\n";
