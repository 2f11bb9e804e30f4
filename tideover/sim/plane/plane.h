/* The data plane's public side. C includes this file, and Python reads it through cffi, which knows no preprocessor:
 * only plain structs, enums and prototypes, and `#define NAME integer`. Lines that begin with #ifndef, #include,
 * #endif or an attribute of their own are for C alone. */
#ifndef TIDEOVER_PLANE_H
#define TIDEOVER_PLANE_H

#include <stdint.h>

#pragma GCC visibility push(default)

/* The compiler that made this library, with its version. */
const char *plane_made_by(void);

/* SHA-256 of the sources that it was made of (build.py says of what exactly), as 64 hexadecimal digits. */
const char *plane_sources(void);

/* How a duration is drawn. */
enum {
    DRAW_CONSTANT,    /* always `low` */
    DRAW_UNIFORM,     /* from `low` to `low` + `spread` */
    DRAW_EXPONENTIAL, /* with this `mean` */
    DRAW_EMPIRICAL,   /* one of `values` */
    DRAW_REQUEST,     /* attempts, each as long as `answer` says, or until `timeout` */
    DRAW_ELSEWHERE    /* by Python, which hands in what it drew */
};

/* Walker's alias table of 2**log2_cells cells. The upper bits of a draw choose a cell; it gives its own index if a coin
 * of 32 bits is below own[cell], else alias[cell]. */
typedef struct {
    const uint32_t *own;
    const int64_t *alias;
    int32_t log2_cells;
} alias_table;

/* A distribution of durations in ns. Fields that its kind does not use are 0. */
typedef struct distribution distribution;
struct distribution {
    int32_t kind;
    int32_t retries; /* attempts of a request after the first */
    int64_t low, spread, mean;
    const int64_t *values;
    alias_table table;          /* of the indexes of `values` */
    const distribution *answer; /* time until a request is answered */
    int64_t timeout;            /* an attempt is given up then; the largest integer: it is waited for */
    int64_t backoff;            /* pause before each attempt after the first */
    int64_t at_least;           /* what each attempt takes, where requests per second are limited */
};

/* The functions below fill `out` with n results, one for each element of their arrays. `out` may be one of these. */

/* 64 random bits of the family `key` for each index and attempt. `attempt` may be NULL: 0 throughout. */
void draw_bits_array(uint64_t key, const int64_t *index, const int64_t *attempt, int64_t n, uint64_t *out);

/* An id of 64 bits for each index and attempt. `attempt` may be NULL: 0 throughout. */
void draw_identity_array(uint64_t key, const int64_t *index, const int64_t *attempt, int64_t n, uint64_t *out);

/* The finaliser of splitmix64. */
void mix64_array(const uint64_t *bits, int64_t n, uint64_t *out);

/* Numbers in the open interval (0, 1). */
void uniform01_array(const uint64_t *bits, int64_t n, double *out);

/* Integers in [0, limit); 0 < limit < 2**31. */
void below_array(const uint64_t *bits, int64_t limit, int64_t n, int64_t *out);

/* Indexes from an alias table. */
void draw_index_array(const alias_table *table, const uint64_t *bits, int64_t n, int64_t *out);

/* Durations in ns; the distribution is not DRAW_ELSEWHERE. */
void draw_duration_array(const distribution *law, const uint64_t *bits, int64_t n, int64_t *out);

/* Natural logarithms of positive normal numbers. */
void natural_log_array(const double *x, int64_t n, double *out);

/* Why ``advance`` comes back before it is done. Nothing is half done then: call it again. */
enum reason {
    DONE,          /* all data up to the moment has moved */
    TURN,          /* a control marker has its turn at the task ``who``, at ``when`` */
    HURRY,         /* a barrier has come to the task ``who``, at ``when``, that overtakes what waits there */
    MARK,          /* a message with a mark has been served by ``who``: the one in ``marked`` */
    WINDOW_FULL,   /* the last tuple that ``who`` has served fills its window */
    NEED_CALLS,    /* the spout ``who`` does not know its next call */
    NEED_CONTENT,  /* nor what its next root contains */
    NEED_MESSAGES, /* there may be too few messages */
    NEED_CHUNKS,   /* or chunks */
    NEED_ROWS,     /* the log of ``who`` is full */
    NEED_LATENCIES,/* so is that of latencies */
    NEED_SPANNED,  /* and that of latencies since an outage */
    NEED_ROOTS,    /* there is no room for another root in the accounts */
    EXPIRED,       /* records up to ``oldest`` were deleted before the spout ``who`` read them */
    NEED_DRAWS,    /* messages at ``who`` whose service Python draws */
    NEED_CHILDREN, /* messages at ``who`` whose children Python makes */
    NEED_LATENCY,  /* the channel ``who`` does not know how long the next message takes */
    NEED_VERDICT,  /* whether ``who`` lets in a tuple that arrives there, which is ``marked`` */
    NEED_ENTRIES,  /* there may be no room for those that ``who`` looks up next */
    NEED_PENDING,  /* the map of the spout ``who`` is full */
    HAS_COMPLETED, /* the log of completed roots is full */
    HAS_LOST,      /* a log of lost tuples is full */
    LONG           /* it has run for a while: see to signals, and come again */
};

/* A tuple on a wire, in a queue or in service; or a marker. */
typedef struct {
    int64_t time;     /* when it arrives; in a queue: arrived */
    int64_t uid;      /* of a control marker: what Python calls it */
    int64_t created;
    int64_t value;
    int32_t key;
    int32_t attempt;
    int32_t epoch;
    int32_t mark;     /* 0: a tuple; > 0: end marker number; < 0: of a mechanism; CONTROL: acts in the queue */
    int32_t source;   /* the input over which it has come, by its place among the receiver's */
    uint32_t turn;    /* so many control actions of its instant came before it */
    int32_t next;     /* the one behind it */
    int32_t flags;
} message;

/* What only mechanisms ask of a message. */
typedef struct {
    int64_t number;      /* of those that its channel has carried; 0: it has none */
    int32_t recovery;    /* of its receiver, for which it is sent again; 0: it is sent for the first time */
} numbered;

#define GAPS 64
#define CONTROL -1000
#define END_OF_REPLAY -1
#define COMMIT -3
#define BARRIER -2
#define HAS_PLACE 1   /* it has a place in its receiver's queue */
#define HAS_BEGUN 2   /* it was in service before, and takes no place when it waits again */
#define FROM_AFAR 4   /* its receiver has to deserialise it */
#define IS_COUNTED 8  /* it is one of those that wait in a queue that drops what finds it full */
#define WAS_READ 16   /* its receiver had read it of its log, and gone back */
#define IS_VOID 32    /* its sender has aborted it; above these flags: by which outage */
#define VOID_SHIFT 8
#define IS_AHEAD 64   /* it has overtaken what waits */
#define WAS_JUDGED 128 /* Python has agreed to it */

/* First in, first out. */
typedef struct {
    int32_t head;
    int32_t tail;
    int32_t n;
} list;

/* A tuple that a task is done with; or a root that a spout has emitted. */
typedef struct {
    int64_t time;
    int64_t uid;
    int64_t created;
    int64_t arrival;
    int64_t value;
    int32_t task;
    int32_t key;
    int32_t attempt;
    int32_t epoch;
    int32_t source;
    int32_t mark;
} row;

typedef struct {
    row *rows;
    int64_t n;
    int64_t room;
} row_log;

/* Some rows, or room for them. */
typedef struct chunk chunk;
#define CHUNK_SIZE 2072

/* Rows that are kept, the oldest first; it has no chunk if there are none. */
typedef struct {
    chunk *first;
    chunk *last;
    int64_t n;
    int32_t from;        /* place of the oldest in its chunk */
    int32_t to;          /* and that behind the newest */
} store;

/* The first message of a channel that has some, for the order in which they arrive. */
typedef struct {
    int64_t time;
    uint32_t turn;
    int32_t position;
} arrival;

/* What a channel has that goes through cards, or once did. */
typedef struct {
    int32_t out;         /* the card of the sender's host; -1: it is no limit */
    int32_t into;        /* and that of the receiver's */
    int32_t place_out;   /* among the channels of the card */
    int32_t place_in;
    int64_t out_takes;   /* how long a tuple takes there */
    int64_t in_takes;
    list leaving;        /* it was sent at its time, and comes to the card out then */
    list flying;         /* it comes to the card in at its time */
    int64_t through;     /* when the last one came through the card in, or will */
} passage;

/* What the sender keeps of a channel, and how far its receiver is with that. */
typedef struct {
    store kept;          /* copies, by number, which is ``arrival`` there; ``task`` is the path */
    int64_t sent;        /* newest number */
    int64_t gone_to;     /* up to this number they went down with the sender, if they were not trimmed before */
    int64_t processed;   /* newest number that the receiver has processed */
    int64_t brought;     /* that its checkpoint holds, or the replay has brought */
    int32_t recovery;    /* its newest one */
    int32_t waits;       /* the end of the replay has not come: what is sent directly will come again */
    int32_t unfinished;  /* nor was it processed */
} buffer;

/* What a channel carries in transactions: its reader sees what is committed. Messages are numbered as they are sent, from
 * 0, but for those that say that others are committed. */
typedef struct {
    list withheld;       /* what has come and is not committed */
    int64_t commits;     /* messages that say so */
    int64_t ready;       /* what was sent before this number will hold with the commit under way */
    int64_t settled;     /* and what before this is committed, or aborted */
    int64_t untold;      /* what is committed, and its reader has not been told of */
} transactions;

/* What a task sends again: one message every ``step``; end markers leave with what is ahead of them. */
typedef struct {
    store rows;          /* as they are kept; ``source`` is the channel by which each leaves, ``time`` the recovery */
    int64_t time;        /* when the next one does */
    int64_t step;
} replay;

/* Where what leaves by a channel finds room: anywhere, in a log, in the receiver's queue, or in places of the channel's
 * own. */
enum placing { NO_PLACES, OF_LOG, OF_QUEUE, OF_CHANNEL };

/* From one task to another: first in, first out. */
typedef struct {
    int32_t up;
    int32_t down;
    int32_t position;    /* among the inputs of ``down``, in the order of the senders */
    int32_t plain;       /* each message takes ``takes``, and nothing else is to be seen to */
    list wire;
    int64_t takes;
    int64_t last;        /* nothing arrives before */
    int64_t sent;
    passage *passage;    /* NULL: it goes through no card */
    int32_t losing;      /* what comes to the wire is lost, because of this outage; 0: it is not */
    int32_t unpacks;     /* what comes costs ``unpacking`` now */
    distribution latency;
    uint64_t key;        /* of the draws of its latency */
    double stretch;      /* how many times as long it takes, while it is slow */
    int64_t held;        /* nothing gets through before */
    int32_t withheld;    /* what is made for it stays with its sender */
    int64_t *drawn;      /* latencies that Python has drawn: of the messages from ``first_drawn`` on */
    int64_t first_drawn;
    int64_t n_drawn;
    int64_t unpacking;   /* what a message from another host costs the receiver to deserialise */
    int64_t packing;     /* and the sender to serialise, as things are */
    int32_t placing;
    int64_t credit;      /* places of its own that are free, as far as its sender knows */
    int64_t notice;      /* until its sender learns of another one */
    list returning;      /* of each of these: when it does */
    buffer *buffer;      /* NULL: nothing is kept */
    int32_t logged;      /* its receiver reads it of a log, and may go back */
    transactions *transactions; /* NULL: what has come is there */
    int32_t blocked;     /* what comes over it is set aside */
    int64_t gone;        /* messages that were lost on the wire */
    int64_t stuck;       /* those of which the connection broke before they came to it */
    int32_t passed;      /* number of the newest barrier that has come over it, where barriers overtake */
    int64_t behind;      /* messages that have come since */
    int64_t waits;       /* of those that wait in the queue, how many are to be looked at still */
} channel;

/* One direction of a host's network card: one message after the other. */
typedef struct {
    int32_t into;            /* it is that of receivers */
    int32_t group;
    int32_t place;           /* among the cards of its group */
    int32_t n;               /* channels */
    const int32_t *channels; /* by sender, then receiver */
    arrival *coming;         /* a heap of those that have a message for it */
    int32_t coming_n;
    int64_t free_at;
    int64_t busy;            /* for how long, all in all, with what has come */
} card;

enum grouping { SHUFFLE, BY_KEY, FIRST, EVERY, GIVEN };

/* What one task sends over one edge. */
typedef struct {
    uint64_t identity;   /* key of the ids that tuples have there */
    int32_t grouping;
    int32_t tasks;
    int32_t working;     /* the first of them, which tuples go to */
    int32_t groups;      /* of keys, which go to tasks together; 0: each key goes by itself */
    int32_t replicas;
    int32_t component;   /* that reads */
    int32_t routes;      /* channels by receiving task and replica, from this place in ``plane.routes`` on */
    uint64_t key;        /* of the draws of its targets */
    int32_t digits;      /* bits that a uid grows by */
    int32_t position_shift;
    int32_t has_position;
    int32_t width;       /* bits of the path of what is sent, with these digits */
    int32_t pad;         /* bits between root and path, at a receiver that has longer paths */
    int64_t digit;       /* of the input, at its place */
    int32_t first_path;  /* of those over which its tuples come, as the receiver numbers them */
    const int32_t *given;       /* targets that Python has found: of what its sender has in its tables */
    const int32_t *given_again; /* and of its retries */
} outlet;

#define TOGETHER 64

/* Messages whose services are drawn together: many at once take a fraction of the time. */
typedef struct {
    int32_t n;
    int32_t which[TOGETHER];
    int64_t uid[TOGETHER];
    int64_t attempt[TOGETHER];
} draws_due;

enum operator { FORWARDS, TABLE, KEEPS, MULTIPLIES, TAKES_IN, MADE_ELSEWHERE };

/* What all tasks of a component do. */
typedef struct {
    int32_t operator;
    int32_t bits;        /* of the path of what arrives */
    int32_t first_outlet;/* edges of any of its tasks */
    int32_t outlets;
    int32_t anchored;
    int32_t whole;       /* children of each tuple, at least (MULTIPLIES) */
    double part;         /* one more with this probability; kept with it (KEEPS) */
    uint64_t select;     /* key of these draws */
    int32_t sentences;   /* rows of the table: children of a tuple by its key */
    const int64_t *starts;
    const int64_t *lengths;
    const int64_t *words;
    distribution service;
    uint64_t service_key;
    draws_due *due;      /* NULL: nothing is drawn ahead */
    int64_t charge;      /* what each tuple takes besides */
    int32_t serves_at_once; /* nothing takes any time there */
    int32_t acks;        /* its tuples are acked as soon as they are done with, */
    int32_t holds_acks;  /* but for their own ids, which Python acks later */
    int32_t input_shift; /* where in a uid the number of its input stands */
    int64_t input_mask;
    const uint64_t *identities; /* keys of the ids of its tuples, by input */
    int32_t applies;     /* its tuples take effect here: counted in the book (1), once each (2) */
    int32_t replicas;
    uint8_t *book;       /* how often each effect is applied, by place in the tree and replica */
} component;

typedef struct {
    int64_t time;
    int64_t since_created;
    int64_t since_first;
} latency;

/* Latencies of one second: exact sums, and counts in the bins of tideover/sim/histogram.py. */
typedef struct {
    int64_t count;
    int64_t sum;
    int64_t greatest;
    uint64_t squares_high; /* upper and lower 64 bits of the sum of squares */
    uint64_t squares_low;
    uint32_t bins[8192];
} tally;

/* OCCUPIED: with an action, where tasks share cores. */
enum state { IDLE, AT_TURN, SERVING, OCCUPIED };
enum calls { BY_TABLE, BY_GAP, BY_RECORD, NEVER_CALLED };
enum emissions { NONE_LOGGED, RETRIES_LOGGED, ALL_LOGGED };

/* A root that waits to be emitted again. */
typedef struct {
    int64_t root, value;
    int64_t created;     /* -1: as it is emitted */
    int32_t key, attempt;
} retry;

/* Acks that a task sends, in order. */
typedef struct {
    const int64_t *uid, *attempt;
    int64_t n, sent, since;
    const int64_t *after;  /* so long after this moment each is sent */
} burst;

/* Roots of one spout task that are neither completed nor given up, with the acker's value of each, by the root's number
 * from ``base`` on (tideover/models/mechanisms/acking.py). */
typedef struct {
    int64_t base, size, room;
    uint64_t *value;
    int64_t *emitted, *last_ack;
    int32_t *attempt;
    int32_t *outage;       /* the newest one that destroyed a tuple of the present attempt; -1: none */
    int32_t *cause;        /* the one because of which the present attempt was made; -1: none */
    int32_t *live;         /* the attempt that is pending, and 1; 0: none is */
    uint8_t *retrying;
} pending;

/* A store that serves one request after the other: of look-ups, and of what Python asks for. */
typedef struct {
    int64_t free_at;
    int64_t asked_until; /* by look-ups */
    int64_t busy;        /* for how long, all in all, with what it has been asked for */
    double factor;       /* how many times as long a request takes as things are */
} remote_store;

/* What a task's tuples look up of its state, which lies in a store but for entries that are at hand. */
typedef struct {
    uint64_t key;        /* of the draws of which entries they are */
    int64_t entries;     /* of the state */
    int64_t accesses;    /* of a tuple, one after the other */
    int64_t next;        /* that of the tuple in service */
    int64_t access_cost;
    int64_t there;       /* how far an entry that is not at hand is away */
    int64_t back;
    remote_store *store; /* where look-ups wait for one another in between; NULL: they do not */
    int64_t work;        /* for so long each keeps it */
    int32_t asks;        /* when this part of the service ends the task is there */
    uint32_t stamp;      /* that entries get now, */
    uint32_t at_hand;    /* and the oldest with which they are at hand */
    uint64_t *slots;     /* a hash table: a number from 1 on, and a stamp; 0: none */
    uint64_t mask;       /* of a place in it */
    int64_t used;
    int64_t most;        /* that may be, before another tuple */
    int64_t changed;     /* entries with the newest stamp */
} look_ups;

/* What a task has made and not sent yet, in the order in which it was made: some places where it goes may be taken. */
typedef struct {
    list messages;         /* ``source`` is the channel by which each leaves */
    int64_t tuples;        /* among them */
    int64_t send;          /* while there are more of them the task begins nothing else */
    int32_t full;          /* there are */
    int32_t asked;         /* the channel by which the first one waits to leave; -1: it does not */
    int64_t asked_at;
    int32_t ahead;         /* tasks that wait for the same queue, before this one and after it; -1: none */
    int32_t behind;
    int64_t moves;         /* when something may leave it; the largest integer: not as things are */
    int64_t blocked;       /* how long it was full, all in all, before ``blocked_since`` */
    int64_t blocked_since;
} line;

/* Places of a queue that are free, and the tasks that wait for one, in the order in which they asked; -1: none. */
typedef struct {
    int64_t free;
    int32_t first;
    int32_t last;
} places;

/* Why something was not let in: it comes again, or has been there; so it does, but its copy is gone; another replica has
 * sent it. */
enum verdict { LET_IN = 1, TURNED_AWAY };
enum known { COMES_AGAIN, COPY_GONE, REPEATED };

/* How a task is concerned by queues with bounds, or looks at what arrives: whether it has had it (FILTERS), or will have
 * it once more (SCREENS), or may read it yet (ISOLATES); whether what is turned away is told, since it comes again because
 * of a failure (TELLS), or in any case (SHOWS); whether it reads of a log, and whether some of its inputs are blocked
 * (ALIGNS), and whether barriers may overtake what waits there (OVERTAKES); or looks up what is in a store (LOOKS_UP);
 * or asks Python of each tuple (ASKS). */
#define HAS_LINE 1
#define DROPS 2
#define FILTERS 4
#define SCREENS 8
#define REPLAYS 16
#define TELLS 32
#define ISOLATES 64
#define READS_LOG 128
#define ALIGNS 256
#define OVERTAKES 512
#define LOOKS_UP 1024
#define SHOWS 2048
#define ASKS 4096

/* A task: a queue and a server; or a spout. */
typedef struct {
    int32_t number;
    int32_t component;
    int32_t replica;
    int32_t spout;         /* its number among the spouts; -1: a bolt */
    int32_t group;
    int32_t place;         /* among its members */
    int32_t first_input;
    int32_t inputs;
    int32_t arriving;      /* of these, how many have a message on the wire */
    int32_t first_outlet;
    int32_t outlets;
    int32_t state;
    int32_t serving;       /* the message in service */
    list queue;            /* what has arrived, and control markers; arrivals come in when somebody looks */
    list held;             /* what has arrived and is not let in yet */
    list aside;            /* what was let in, and is out of the queue for a while */
    int32_t hurries;       /* barriers overtake now what waits here, and need no room */
    int32_t newest;        /* the newest barrier that has come here */
    int32_t records;       /* it has taken part in that snapshot, and what comes ahead of a barrier belongs to it */
    row_log recorded;
    store read;            /* of its log, and done with since that was trimmed; ``task`` is the ``source``, and
                            * ``arrival`` FROM_AFAR, or 0 */
    int32_t up;
    int32_t closed;        /* it is up, and takes nothing in yet */
    int32_t holds;         /* what comes while it is down is held, not lost */
    int32_t silent;        /* what it makes goes nowhere */
    int32_t mute;          /* what it makes is for nobody */
    int32_t measures;      /* its tuples are measured */
    int32_t outputs;       /* they leave the topology for readers */
    int32_t logs;          /* its tuples are logged */
    int32_t again;         /* all that it does it does again because of this outage, counted from 1; 0: it does not */
    int32_t serialises;    /* messages between hosts cost it something */
    int64_t began;
    int64_t ends;          /* of the service under way */
    int64_t free_at;       /* no service begins before */
    int64_t stopped_until;
    int64_t busy;          /* time in service, and kept busy, all in all */
    int64_t worked;        /* tuples */
    int64_t fills;         /* tuples until its window is full; -1: windows do not fill */
    row_log log;
    const int32_t *child_starts; /* where the children begin that Python has made of tuple 0, 1, ... of a block */
    const int32_t *child_keys;
    const int32_t *child_positions;
    int32_t bounded;       /* these, as far as they hold */
    int32_t verdict;       /* on the next arrival: LET_IN, or TURNED_AWAY; 0: none yet */
    line line;
    places places;         /* of its queue, if those wait who find it full */
    int64_t length;        /* of a queue that drops */
    int64_t waiting;       /* tuples that are counted there */
    int64_t *seen;         /* the greatest uid that has come on each path: what is not greater is turned away; NULL: all
                            * that comes is let in */
    int64_t *done;         /* the uid of the last tuple of each path that it has processed; NULL: nobody asks */
    int64_t *numbers;      /* of what is in its log; NULL: nobody asks */
    int64_t over;          /* tuples of older epochs than this are turned away, too */
    int64_t repeated;      /* tuples that were turned away, up to this moment */
    int64_t repeats_until;
    int64_t *sums;         /* of the values that its state has taken in since somebody looked, by key; NULL: it is told */
    int64_t *taken;        /* the tuples behind them */
    int32_t *attempts;
    int64_t n_taken;
    int64_t taken_room;
    burst acks;
    look_ups *look_ups;    /* NULL: its tuples look nothing up */
    /* where cores are shared, or slow */
    int32_t cores;         /* of its host; -1: it has one of its own */
    int32_t works;         /* it works there */
    double left;           /* of what it was at when it was stopped (ns of a core's work) */
    double owes;           /* work that keeps it occupied after the service under way */
    double had;            /* time of a core; while it works, less ``shared`` of its cores when it began */
    /* of a spout */
    int32_t calls_by;
    int32_t ended;         /* there are no calls behind those that are known */
    distribution gap;
    uint64_t gap_key;
    int64_t *gaps;         /* GAPS of them that are drawn, from that before call number ``first_gap`` on */
    int64_t first_gap;
    int64_t charge;        /* what each call takes besides */
    int64_t since;         /* calls are counted from here: the last one, or when it could go on */
    int64_t calls;
    int64_t next_root;
    int64_t limit;         /* roots in all; -1: no end */
    int64_t epoch;
    const int64_t *times;  /* calls that are known */
    int64_t n_times;
    int64_t used;
    const int64_t *uids;   /* roots that are emitted at these calls, if they are given */
    const int64_t *stamps; /* and their creation stamps */
    const int64_t *keys;   /* contents of the roots from number ``first_content`` on; or of given ones */
    const int64_t *values;
    int64_t first_content;
    int64_t n_content;
    const retry *retries;  /* served before anything new, from number ``retried`` on */
    int64_t n_retries;
    int64_t retried;
    int64_t retries_since; /* when the first of them could be served */
    int64_t most_in_flight; /* no calls while so many roots are in flight; -1: however many */
    int64_t in_flight;
    int64_t first_record;  /* if it reads a queue: ``times`` are when records from this number on were appended */
    int64_t oldest;        /* the record that it reads next, if those before it were deleted */
    int64_t poll_cost;     /* what reading one takes */
    int64_t retention;     /* records that are older were deleted; -1: none */
    replay replay;         /* what it sends again */
} task;

/* Latencies since an outage, until what was sent again because of it is done. Twice: since creation, and since the first
 * emission of the root. */
typedef struct {
    int32_t outage;
    int32_t goes_on;     /* something that was sent again was measured in this step */
    int64_t end;         /* what is done at or before this is inside */
    int64_t resolution;  /* the end is that of a stretch of this length; 0: a moment */
    int64_t last_replay; /* when the last of it has arrived at a task that was hit */
    int64_t replayed;    /* how many have */
    const uint8_t *hit;  /* by task */
    tally inside[2];
    tally behind[2];     /* what was done later than all that is inside for certain */
} watch;

/* Because of which outage an attempt was made that is not the newest one of its root. */
typedef struct {
    int64_t root;
    int64_t attempt;
    int64_t outage;
} cause;

/* Roots that are there: their open tuples, from root number ``base`` on. */
typedef struct {
    int64_t base;
    int64_t room;
    int64_t used;
    int32_t *open;
    int64_t *last;       /* when a tuple of it was done last */
    uint8_t *inside;
    int64_t *first;      /* when it was emitted first */
} roots;

typedef struct {
    int64_t first;       /* number of the first slot that has a place */
    int64_t *entered;    /* all by slots of 10 ms */
    int64_t *left;
    int64_t *done;
    int64_t *output;
    int64_t twice;       /* effects that were applied before */
} counts;

/* The cores of a host, shared by its busy tasks: each has min(1, number / jobs) of one. */
typedef struct {
    double number;       /* infinite: one for each task */
    double factor;       /* how fast a core is: 1, or less while the host is slow */
    double share;        /* what each busy task has of a core now */
    double speed;        /* and how fast that makes it */
    int64_t since;       /* when it was looked last what has been done */
    double shared;       /* how long a task that always was busy has had a core until then */
    int64_t busy;        /* and how long the cores were busy, all together */
    int32_t jobs;        /* busy tasks */
    int32_t first;       /* the task that is done first; -1: none */
    int32_t *who;        /* those that are busy, who has the least to do last */
    double *left;        /* what each has to do still (ns of a core's work); with room for one more */
} cores;

/* Tasks that feel one another at any instant: they share cores, or wait for room in queues. Each alone, else. */
typedef struct {
    int32_t n;
    int32_t leaves;         /* a power of 2, at least n */
    const int32_t *members; /* tasks, in order */
    int64_t *next;          /* a tournament of their next events, the earliest first: the winner is at 1 */
    int32_t *winner;        /* place among the members */
    int32_t n_cards;
    int32_t card_leaves;
    const int32_t *cards;   /* cards that they feel one another by */
    int64_t *card_next;     /* their tournament: at one instant by sender and receiver of what comes next */
    int64_t *card_rank;
    int32_t *card_winner;
} group;

typedef struct {
    int64_t now;         /* all data up to here has moved */
    int64_t instant;     /* of the newest control action */
    uint32_t turn;       /* so many of its instant have begun */
    int32_t spout_bits;
    int32_t n_tasks;
    int32_t n_channels;
    int32_t n_components;
    int32_t waiting;     /* control markers in queues */
    int32_t changed;     /* what befalls channels is not as it was when data moved last */
    message *messages;
    int32_t room;        /* messages */
    int32_t used;
    int32_t freed;       /* the first that can be used again */
    int32_t in_use;
    int32_t most_made;   /* messages that one step can make, at most */
    chunk *spare;        /* those that were used before */
    chunk *fresh;        /* and so many one behind the other that were not */
    int64_t n_fresh;
    int64_t n_spare;     /* all of these */
    int32_t few;         /* if each of so many messages is kept, there may be too few */
    int32_t who;
    int64_t when;
    message marked;
    int64_t marked_number;
    task *tasks;
    channel *channels;
    arrival *arriving;   /* for each task from its first input on: the a heap of those that have messages */
    outlet *outlets;
    const int32_t *routes;
    component *components;
    numbered *numbers;   /* of each message; NULL: nobody asks */
    int64_t *work;       /* of each message, what was drawn for its service; -1: nothing yet */
    int32_t *made;       /* of each message, its place in the block of which Python has made the children; -1: in none;
                          * NULL: Python makes none */
    int32_t *paths;      /* of each message, the number of the logical path by which it has come; NULL: nobody asks */
    int32_t path;        /* that of the tuple at hand */
    roots roots;
    counts counts;
    latency *latencies;
    int64_t n_latencies;
    int64_t latencies_room;
    int32_t again;       /* some roots have been emitted again: their latencies are told apart */
    watch **watches;     /* outages that are watched */
    int32_t n_watches;
    latency *spanned;    /* of what was measured in this step */
    int64_t n_spanned;
    int64_t spanned_room;
    const cause *causes;
    int64_t n_causes;
    row_log emitted;     /* roots, if somebody wants to know */
    row_log lost;        /* tuples that found their receiver down, or were on a wire that loses them */
    row_log overflowed;  /* tuples that found a queue full */
    row_log discarded;   /* what comes again, or has been there; ``arrival``: why (enum known) */
    row_log resent;      /* tuples that were sent again, by their receivers */
    int32_t logs_emitted; /* which */
    pending *pending;    /* of each spout task; NULL: nobody acks */
    const int32_t *spouts; /* the tasks */
    uint64_t created;    /* the ids of what the tuple at hand has become, XORed */
    int64_t alive_since; /* the acker knows only roots that were emitted after this */
    int64_t acker_outage;/* because of which it is down; -1 */
    int64_t rotation;    /* its own map rotates so often, */
    int64_t buckets;     /* and has so many buckets */
    int64_t acked;       /* acks that were sent */
    row_log acks;        /* those of bursts; without room: nobody asks */
    int64_t in_order_until; /* up to here what is acked first has to be acked first, wherever that is */
    int32_t logs_completed;
    row_log completed;
    int32_t accounts;    /* whether anything is counted */
    int64_t step;        /* length of the steps in which tasks take turns; 0: all the way */
    int64_t budget;      /* events until it sees to signals */
    int64_t events;
    int32_t unknown;     /* a channel of which few latencies are known, counted from 1; 0: none */
    int32_t losing;      /* channels that lose tuples */
    int32_t n_cards;
    card *cards;
    passage *passages;   /* of each channel; NULL: there are no cards */
    int32_t n_groups;
    group *groups;       /* in topological order; behind them one of all tasks */
    cores *cores;        /* of each host whose tasks share them, or are slow for a while */
    group *moving;       /* whose members move in one order of events now; NULL: none */
} plane;

int32_t plane_advance(plane *p, int64_t until);
int64_t plane_next_event(plane *p, int32_t t);
int64_t plane_serialisation(plane *p, int32_t t);
int64_t plane_packing(plane *p, int32_t t, int64_t n, const int64_t *uid, const int64_t *key);
void plane_take_in(plane *p, int32_t t, int64_t now);
int32_t plane_place(plane *p, int32_t t, int64_t now, int64_t name, int32_t first);
void plane_turn_over(plane *p, int32_t t);
int64_t plane_send(plane *p, int32_t t, int64_t now, int64_t n, const int64_t *uid, const int64_t *key,
                   const int64_t *value, int64_t epoch);
void plane_broadcast(plane *p, int32_t t, int64_t now, int32_t mark, int32_t key, int32_t ahead);
int64_t plane_missing(plane *p, int32_t spout, int64_t n, const int64_t *roots, const int64_t *keys, int64_t *uid,
                      int32_t *at, int64_t room);
void plane_ack(plane *p, int32_t t, int64_t n, const int64_t *uid, const int64_t *attempt, const int64_t *times);
void plane_lose_list(plane *p, int32_t t, list *l, int64_t now);
void plane_lose_line(plane *p, int32_t t, int64_t now);
void plane_add_chunks(plane *p, void *chunks, int64_t n);
void plane_stored(const store *s, row *out);
int64_t plane_tuples(const store *s, int64_t *uid, int64_t *key);
void plane_trim(plane *p, int32_t c, int64_t number);
void plane_trim_known(plane *p, int32_t c, const int64_t *seen, int32_t newest_mark);
void plane_lose_copies(plane *p, int32_t c);
void plane_keep(plane *p, int32_t c, const row *rows, int64_t n);
int64_t plane_line_up_kept(plane *p, int32_t c, int64_t after, int32_t recovery);
void plane_replay(plane *p, int32_t t, int64_t now, int64_t step);
void plane_give_up(plane *p, int32_t t);
void plane_trim_log(plane *p, int32_t t, int64_t n);
void plane_go_back(plane *p, int32_t t);
int64_t plane_logged(plane *p, int64_t now);
void plane_prepare(plane *p, int32_t t);
void plane_commit(plane *p, int32_t t);
void plane_tell(plane *p, int32_t t, int64_t now);
void plane_abort(plane *p, int32_t t, int64_t now, int32_t outage);
void plane_block(plane *p, int32_t t, int64_t now);
void plane_unblock(plane *p, int32_t t, int64_t now);
void plane_cut(plane *p, int32_t c, int64_t now);
void plane_notice(plane *p, int32_t t, int32_t number);
void plane_forget_barriers(plane *p, int32_t t);
void plane_markers_first(plane *p, int32_t t, int64_t now);
int64_t plane_ahead(plane *p, int32_t t, row *out, int64_t room);
void plane_send_ahead(plane *p, int32_t t, int64_t now, int32_t key);
void plane_put_back(plane *p, int32_t t, int64_t now, int32_t in_line, int64_t n, const row *rows);
int64_t plane_come(plane *p, int64_t now);
int32_t plane_end_comes(plane *p, int32_t c, int32_t recovery);
void plane_empty(plane *p, int32_t t, int64_t now);
void plane_move_entries(look_ups *l, uint64_t *slots, uint64_t mask);
void plane_suspend(plane *p, int32_t t, int64_t now);
int32_t plane_interrupt(plane *p, int32_t t, int64_t now);
void plane_open(plane *p, int32_t t, int64_t now);
void plane_sift(plane *p, int32_t t, int64_t now);
int32_t plane_copy(plane *p, int32_t from, int32_t to, int32_t place, int64_t now);
void plane_follow(plane *p, int32_t mine, int32_t other);
void plane_keep_aside(plane *p, int32_t t, int64_t now);
void plane_set_aside(plane *p, int32_t t);
void plane_stop(plane *p, int32_t t, int64_t now, int64_t until);
void plane_occupy(plane *p, int32_t t, int64_t now, int64_t duration);
void plane_slow(plane *p, int32_t h, int64_t now, double factor);
void plane_hold(plane *p, int32_t c, int64_t now, int64_t until);
void plane_lose(plane *p, int32_t c, int64_t now);
void plane_lead(plane *p, int32_t c, int64_t now, int32_t unpacks);
void plane_lay_card(plane *p, int32_t k);
void plane_let_go(plane *p, int32_t c, int64_t now);
int64_t plane_listed(plane *p, const list *l, row *out, int64_t room);
void plane_take_away(plane *p, int32_t t, row *out);
void plane_work_off(plane *p, int32_t t, int64_t now, int64_t n, const row *rows);
int64_t plane_coming(plane *p, int32_t t, row *out, int64_t room);
int64_t plane_waiting(plane *p, int32_t t, row *out, int32_t *which, int64_t room);

void plane_tally(const latency *l, int64_t n, int32_t since_first, int64_t second, int64_t seconds, tally *out);

#pragma GCC visibility pop

#endif
