// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Whether what a window shows of a session is on the disk, and the words for it.

#include <QString>

namespace vitrine::ui {

struct SessionKeeping {
    enum class State {
        Saved,
        Saving,   ///< an edit is on its way
        ReadOnly, ///< and nothing was edited
        Deleted,  ///< or moved: nothing lies at the path
        Replaced, ///< another file lies at the path
        Waiting   ///< edits wait in memory: the file cannot be written
    };
    State state = State::Saved;
    QString reason = {}; ///< of Waiting: why writing failed, a sentence

    bool operator==(const SessionKeeping&) const = default;
    /// Something that a person sees would be gone when the session is closed.
    bool endangered() const { return state == State::Deleted || state == State::Replaced || state == State::Waiting; }
    /// The file itself is not where it was.
    bool lost() const { return state == State::Deleted || state == State::Replaced; }
};

/// "Saved", "Not saved: the file was deleted": the words of the status row.
QString keepingText(const SessionKeeping& keeping);

/// The sentence over the view, which names the file; empty where nothing is endangered.
QString keepingSentence(const SessionKeeping& keeping, const QString& path);

} // namespace vitrine::ui
