/* policer.h - what the program in the kernel and the tool share: the elements of their maps. */
#ifndef POLICER_H
#define POLICER_H

/* The one element of the map `settings`. The tool changes limits while programs run: it writes those of the other turn,
 * then the turn, so a program reads either the old ones or the new ones. */
struct settings {
    tatcell_bpf_table_t table;
    /* The limit of each source, and that of all together. */
    tatcell_bpf_limit_t source[2], all[2];
    uint32_t turn;
    /* 0: a packet costs 1; 1: a packet costs its bytes. */
    uint32_t bytes;
    /* The interface whose tc filter this policer is, and may remove; 0: XDP. */
    uint32_t tc;
    /* 0: what gets no verdict passes; 1: it is refused. */
    uint32_t refuse_undecided;
};

/* What packets came to; the names are those of COUNTS below. */
enum {
    PASSED,
    REFUSED,   /* by the limit of their source */
    ALL,       /* by the limit of all */
    NEVER,     /* larger than the burst */
    UNDECIDED, /* other CPUs won every attempt; counted as passed or refused, too */
    OTHER,     /* no IP; they pass */
    SHADOWED,  /* pass, and a dry run would have refused them */
    INSERTED,  /* of a source that was not in the table */
    UNTRACKED, /* of a source that found its set full */
    INHERITED,
    FORGIVEN,
    COUNT
};
#define COUNTS \
    {"passed", "refused", "refused by the limit of all", "larger than the burst", "undecided", "no IP", \
     "would be refused", "new sources", "found no slot", "took over a debt", "debts forgiven"}

/* An element of the per-CPU map `counts`. */
struct counts {
    uint64_t of[COUNT];
};

/* An element of the map `refused`: a source that was refused, at the place that its hash says. The tool asks the table
 * which of the longest debts these are. */
#define REFUSED_PLACES 4096
struct refused {
    /* The key: two words, the first byte in the lowest bits: 4, 32 and the address; or 6, 64 and half of it. */
    uint64_t low, high;
};

#define KEY_BYTES_4 6
#define KEY_BYTES_6 10

#endif
