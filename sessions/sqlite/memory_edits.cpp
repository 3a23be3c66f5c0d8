// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "sessions/sqlite/memory_edits.h"

#include <cstdint>
#include <string>
#include <vector>

namespace vitrine::sessions {

namespace {

struct EditedRun {
    RunId run = 0;
    std::vector<std::string> note; ///< one or none
    std::vector<std::string> tags;
    std::vector<TimelineNote> timeline;
};

std::vector<EditedRun> editedRuns(const Database& database) {
    std::vector<EditedRun> runs;
    Statement edited(database, "SELECT run FROM temp.edited_runs ORDER BY run");
    while (edited.step()) {
        EditedRun& run = runs.emplace_back();
        run.run = edited.integer(0);
    }
    Statement note(database, "SELECT body FROM temp.notes WHERE run = ?");
    Statement tags(database, "SELECT tag FROM temp.tags WHERE run = ? ORDER BY position");
    Statement timeline(database, "SELECT id, time_begin, time_end, body FROM temp.timeline_notes WHERE run = ?");
    for (EditedRun& run : runs) {
        for (note.bind(run.run); note.step();) {
            run.note.push_back(note.text(0));
        }
        for (tags.bind(run.run); tags.step();) {
            run.tags.push_back(tags.text(0));
        }
        for (timeline.bind(run.run); timeline.step();) {
            run.timeline.push_back({timeline.integer(0), timeline.integer(1), timeline.integer(2), timeline.text(3)});
        }
    }
    return runs;
}

void replaceEdits(const Database& database, const EditedRun& edited) {
    for (const char* table : {"notes", "tags", "timeline_notes"}) {
        Statement(database, std::string("DELETE FROM main.") + table + " WHERE run = ?").bind(edited.run).run();
    }
    for (const std::string& body : edited.note) {
        Statement(database, "INSERT INTO main.notes (run, body) VALUES (?, ?)").bind(edited.run, body).run();
    }
    std::int64_t position = 0;
    for (const std::string& tag : edited.tags) {
        Statement(database, "INSERT INTO main.tags (run, position, tag) VALUES (?, ?, ?)")
            .bind(edited.run, position++, tag)
            .run();
    }
    for (const TimelineNote& note : edited.timeline) {
        // Another program may have given the number away meanwhile.
        Statement(database, "INSERT INTO main.timeline_notes (id, run, time_begin, time_end, body) VALUES "
                            "((SELECT CASE WHEN EXISTS (SELECT 1 FROM main.timeline_notes WHERE id = ?1) THEN NULL "
                            "ELSE ?1 END), ?2, ?3, ?4, ?5)")
            .bind(note.id, edited.run, note.timeBegin, note.timeEnd, note.body)
            .run();
    }
}

} // namespace

void beginMemoryEdits(const Database& database) {
    database.execute("CREATE TEMP TABLE edited_runs (run INTEGER PRIMARY KEY); "
                     "CREATE TEMP TABLE notes (run INTEGER PRIMARY KEY, body TEXT NOT NULL); "
                     "CREATE TEMP TABLE tags (run INTEGER NOT NULL, tag TEXT NOT NULL, position INTEGER NOT NULL, "
                     "PRIMARY KEY (run, tag)) WITHOUT ROWID; "
                     "CREATE TEMP TABLE timeline_notes (id INTEGER PRIMARY KEY, run INTEGER NOT NULL, "
                     "time_begin INTEGER NOT NULL, time_end INTEGER NOT NULL, body TEXT NOT NULL); "
                     "INSERT INTO temp.notes SELECT run, body FROM main.notes; "
                     "INSERT INTO temp.tags SELECT run, tag, position FROM main.tags; "
                     "INSERT INTO temp.timeline_notes SELECT id, run, time_begin, time_end, body "
                     "FROM main.timeline_notes");
}

void markMemoryEdit(const Database& database, RunId run) {
    Statement(database, "INSERT OR IGNORE INTO temp.edited_runs (run) VALUES (?)").bind(run).run();
}

void writeMemoryEdits(const Database& source, const Database& target) {
    const std::vector<EditedRun> runs = editedRuns(source);
    Transaction transaction(target);
    Statement known(target, "SELECT count(*) FROM main.runs WHERE id = ?");
    for (const EditedRun& run : runs) {
        if (known.bind(run.run).step() && known.integer(0) == 1) {
            replaceEdits(target, run);
        }
    }
    transaction.commit();
}

void endMemoryEdits(const Database& database) {
    database.execute("DROP TABLE temp.edited_runs; DROP TABLE temp.notes; DROP TABLE temp.tags; "
                     "DROP TABLE temp.timeline_notes");
}

} // namespace vitrine::sessions
