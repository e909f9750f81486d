-- The core of the judge in SQL, over the same JSON lines: how often each anomaly is found in each partition.
-- `duck.py` says what is not computed here, and runs it. {history} is the folder of the files.

CREATE TEMP TABLE sources AS
SELECT file AS filename, row_number() OVER (ORDER BY file) AS source FROM glob('{history}/consumer-*.jsonl');

CREATE TEMP TABLE said AS
SELECT source, seq, time_ns, kind, outcome, "partition", "offset", lane, entries
FROM read_json('{history}/consumer-*.jsonl', format = 'newline_delimited', filename = true, columns = {{
    seq: 'BIGINT', time_ns: 'BIGINT', kind: 'VARCHAR', outcome: 'VARCHAR', "partition": 'BIGINT', "offset": 'BIGINT',
    lane: 'BIGINT', entries: 'STRUCT("partition" BIGINT, committed_offset BIGINT)[]'}})
JOIN sources USING (filename);

CREATE TEMP TABLE observed AS
SELECT kind, time_ns, asked_ns, "partition", "offset", "key"
FROM read_json('{history}/observer.jsonl', format = 'newline_delimited', columns = {{
    kind: 'VARCHAR', time_ns: 'BIGINT', asked_ns: 'BIGINT', "partition": 'BIGINT', "offset": 'BIGINT',
    "key": 'VARCHAR'}})
WHERE kind IN ('record', 'log_end', 'log_start');

CREATE TEMP TABLE acknowledged AS
SELECT "partition", "offset"
FROM read_json('{history}/workload.jsonl', format = 'newline_delimited', columns = {{
    kind: 'VARCHAR', outcome: 'VARCHAR', "partition": 'BIGINT', "offset": 'BIGINT'}})
WHERE kind = 'send' AND outcome = 'ok';

CREATE TEMP TABLE told AS
SELECT kind, time_ns, wall_ns, phase
FROM read_json('{history}/run.jsonl', format = 'newline_delimited', columns = {{
    kind: 'VARCHAR', time_ns: 'BIGINT', wall_ns: 'BIGINT', phase: 'VARCHAR'}})
WHERE kind IN ('clock', 'phase');

CREATE TEMP TABLE clocks AS SELECT time_ns, wall_ns FROM told WHERE kind = 'clock';

CREATE TEMP TABLE committed AS
SELECT "partition", committed_offset AS position, log_offset, log.time_ns,
       commit_time_ms * 1000000 - clocks.wall_ns + clocks.time_ns AS effect_ns,
       max(committed_offset) OVER (PARTITION BY "partition" ORDER BY log_offset
                                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS peak
FROM read_json('{history}/offsets.jsonl', format = 'newline_delimited', columns = {{
    kind: 'VARCHAR', time_ns: 'BIGINT', "partition": 'BIGINT', committed_offset: 'BIGINT', log_offset: 'BIGINT',
    commit_time_ms: 'BIGINT'}}) AS log
ASOF JOIN clocks ON clocks.wall_ns <= commit_time_ms * 1000000
WHERE kind = 'committed';

CREATE TEMP TABLE answers AS
SELECT lane, entry."partition", entry.committed_offset AS position, time_ns
FROM (SELECT lane, time_ns, unnest(entries) AS entry
      FROM read_json('{history}/requests-b*.jsonl', format = 'newline_delimited', columns = {{
          kind: 'VARCHAR', api: 'VARCHAR', lane: 'BIGINT', time_ns: 'BIGINT', error: 'BIGINT',
          entries: 'STRUCT("partition" BIGINT, committed_offset BIGINT)[]'}})
      WHERE api = 'OFFSET_FETCH' AND error = 0);

-- What the members said, by partition, each with the possession it falls into: NULL where none is open.
CREATE TEMP TABLE own AS
SELECT *, CASE WHEN latest = 'assigned' THEN source * 1000000 + number END AS possession
FROM (SELECT *, count_if(kind = 'assigned') OVER file AS number,
             last_value(CASE WHEN kind IN ('assigned', 'revoked', 'lost') THEN kind END IGNORE NULLS) OVER file AS latest
      FROM (SELECT source, seq, time_ns, kind, outcome, "partition", "offset" AS place
            FROM said WHERE kind IN ('delivered', 'processed')
            UNION ALL
            SELECT source, seq, time_ns, kind, outcome, entry."partition", entry.committed_offset
            FROM (SELECT *, unnest(entries) AS entry
                  FROM said WHERE kind IN ('assigned', 'revoked', 'lost', 'commit')))
      WINDOW file AS (PARTITION BY "partition", source ORDER BY seq
                      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW));

CREATE TEMP TABLE records AS
SELECT "partition", "offset", any_value("key") AS "key" FROM observed WHERE kind = 'record' GROUP BY ALL;

CREATE TEMP TABLE deliveries AS
SELECT "partition", source, seq, time_ns, place, possession FROM own
WHERE kind = 'delivered' AND possession IS NOT NULL;

CREATE TEMP TABLE completions AS
SELECT own."partition", source, seq, time_ns, place, possession, "key"
FROM own LEFT JOIN records ON records."partition" = own."partition" AND records."offset" = place
WHERE kind = 'processed';

CREATE TEMP TABLE first_done AS
SELECT "partition", place, min(time_ns) AS time_ns, arg_min(source, time_ns) AS source, arg_min(seq, time_ns) AS seq,
       any_value("key") AS "key"
FROM completions GROUP BY "partition", place;

CREATE TEMP TABLE standing AS
SELECT "partition", arg_max(position, log_offset) AS position FROM committed GROUP BY "partition";

CREATE TEMP TABLE unhandled AS
SELECT records."partition", records."offset", standing.position IS NOT NULL AND "offset" < standing.position AS past
FROM records
LEFT JOIN standing USING ("partition")
LEFT JOIN first_done ON first_done."partition" = records."partition" AND first_done.place = records."offset"
WHERE first_done.time_ns IS NULL
   OR (NOT coalesce("offset" < standing.position, false)
       AND first_done.time_ns > (SELECT min(time_ns) FROM told WHERE phase = 'snapshot'));

-- Where each possession had to start: what the broker answered its member last, else the log start.
CREATE TEMP TABLE floors AS
SELECT opened."partition", opened.possession, CASE WHEN answers.position >= 0 THEN answers.position ELSE start END AS floor
FROM (SELECT own."partition", possession, own.time_ns, lane, start
      FROM own
      JOIN (SELECT source, any_value(lane) AS lane FROM said WHERE kind = 'started' GROUP BY source) USING (source)
      LEFT JOIN (SELECT "partition", min("offset") AS start FROM observed WHERE kind = 'log_start'
                 GROUP BY "partition") AS starts ON starts."partition" = own."partition"
      WHERE kind = 'assigned') AS opened
ASOF LEFT JOIN answers
ON answers.lane = opened.lane AND answers."partition" = opened."partition" AND answers.time_ns <= opened.time_ns;

CREATE TEMP TABLE again AS
SELECT "partition", place, possession
FROM (SELECT deliveries.*, row_number() OVER (PARTITION BY "partition", place ORDER BY time_ns, source, seq) AS nth
      FROM deliveries
      SEMI JOIN (SELECT "partition", place FROM deliveries GROUP BY "partition", place
                 HAVING min(possession) <> max(possession)) AS several USING ("partition", place))
WHERE nth > 1;

CREATE TEMP TABLE late AS
SELECT "partition", source, seq, bool_or(same_key) AS same_key
FROM (SELECT "partition", source, seq, keyed AS same_key
      FROM (SELECT *, place < max(place) OVER (PARTITION BY "partition", possession ORDER BY seq
                                               ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS unkeyed,
                   place < max(place) OVER (PARTITION BY "partition", possession, "key" ORDER BY seq
                                            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS keyed
            FROM completions WHERE possession IS NOT NULL)
      WHERE unkeyed
      UNION ALL
      SELECT "partition", source, seq, coalesce(keyed_ns < time_ns - 500000000 OR keyed_seq < seq, false)
      FROM (SELECT *, min(time_ns) OVER (PARTITION BY "partition" ORDER BY place DESC
                                         ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS unkeyed_ns,
                   min(seq) OVER (PARTITION BY "partition", source ORDER BY place DESC
                                  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS unkeyed_seq,
                   min(time_ns) OVER (PARTITION BY "partition", "key" ORDER BY place DESC
                                      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS keyed_ns,
                   min(seq) OVER (PARTITION BY "partition", source, "key" ORDER BY place DESC
                                  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS keyed_seq
            FROM first_done)
      WHERE unkeyed_ns < time_ns - 500000000 OR unkeyed_seq < seq)
GROUP BY "partition", source, seq;

-- The commits that members asked for, each with the one before it (`low`) and the first that asked for so much.
CREATE TEMP TABLE asked AS
SELECT "partition", possession, seq, place, coalesce(lag(place) OVER turns, -1) AS low,
       min(seq) OVER (PARTITION BY "partition", possession ORDER BY place DESC
                      RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS first_seq
FROM own WHERE kind = 'commit' AND outcome = 'invoke' AND possession IS NOT NULL
WINDOW turns AS (PARTITION BY "partition", possession ORDER BY seq);

CREATE TEMP TABLE ahead_by_own_word AS
WITH done AS (SELECT "partition", source, place, min(seq) AS seq FROM completions GROUP BY ALL),
     worked AS (SELECT deliveries."partition", possession, deliveries.place, coalesce(done.seq, 9223372036854775807) AS done_seq
                FROM (SELECT "partition", possession, source, place FROM deliveries GROUP BY ALL) AS deliveries
                LEFT JOIN done ON done."partition" = deliveries."partition" AND done.source = deliveries.source
                              AND done.place = deliveries.place),
     passed AS (SELECT worked.* FROM worked ASOF JOIN asked
                ON asked."partition" = worked."partition" AND asked.possession = worked.possession
                   AND asked.place > worked.place
                WHERE asked.first_seq < worked.done_seq)
SELECT DISTINCT asked."partition", asked.place AS position
FROM passed JOIN asked
ON asked."partition" = passed."partition" AND asked.possession = passed.possession AND asked.seq < passed.done_seq
   AND asked.low <= passed.place AND passed.place < asked.place;

CREATE TEMP TABLE ahead_by_log AS
SELECT DISTINCT raised."partition", raised.position
FROM records
ASOF JOIN (SELECT * FROM committed WHERE position > coalesce(peak, -1)) AS raised
ON raised."partition" = records."partition" AND raised.position > records."offset"
LEFT JOIN first_done ON first_done."partition" = records."partition" AND first_done.place = records."offset"
WHERE first_done.time_ns IS NULL OR first_done.time_ns > raised.effect_ns + 500000000;

SELECT anomaly, "partition", count(*) AS found
FROM (SELECT 'skipped' AS anomaly, "partition" FROM unhandled WHERE past
      UNION ALL SELECT 'unseen', "partition" FROM unhandled WHERE NOT past
      UNION ALL SELECT CASE WHEN place >= floor THEN 'redelivered' ELSE 'illegal-redelivery' END, again."partition"
                FROM again JOIN floors USING ("partition", possession)
      UNION ALL SELECT 'nonmonotonic-poll', "partition"
                FROM (SELECT "partition", place <= max(place) OVER (PARTITION BY "partition", possession ORDER BY seq
                             ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS back FROM deliveries)
                WHERE back
      UNION ALL SELECT 'reordered-key', "partition" FROM late
      UNION ALL SELECT 'reordered-key of one key', "partition" FROM late WHERE same_key
      UNION ALL SELECT 'commit-regression', "partition"
                FROM (SELECT "partition", low AND NOT coalesce(lag(low) OVER (PARTITION BY "partition"
                             ORDER BY log_offset), false) AS begins
                      FROM (SELECT *, coalesce(position < peak, false) AS low FROM committed))
                WHERE begins
      UNION ALL SELECT 'commit-ahead', "partition"
                FROM (SELECT * FROM ahead_by_own_word UNION SELECT * FROM ahead_by_log)
      UNION ALL SELECT 'commit-past-end', committed."partition"
                FROM committed ASOF JOIN (SELECT "partition", coalesce(asked_ns, time_ns) AS time_ns, "offset"
                                          FROM observed WHERE kind = 'log_end') AS ends
                ON ends."partition" = committed."partition" AND ends.time_ns >= committed.time_ns
                WHERE committed.position > ends."offset"
      UNION ALL SELECT 'lost-write', "partition" FROM acknowledged ANTI JOIN records USING ("partition", "offset"))
GROUP BY anomaly, "partition"
ORDER BY anomaly, "partition";
