// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Every command of the program in one list: menus, tool bars, the palette, the help page and rebinding all come from
// it. An action's id is its contract: the window offers a triggered action to the current view first (View::perform).

#include <QAction>
#include <QKeySequence>
#include <QObject>
#include <QString>
#include <map>
#include <vector>

class QSettings;

namespace vitrine::ui {

struct ActionSpec {
    const char* id;
    const char* text;
    const char* group;     ///< "File", "Edit", "View", "Run", "Go", "Move and zoom", "Select and measure", "Compare",
                           ///< "Panels", "Help"
    const char* keys = ""; ///< portable key sequences separated by spaces
    const char* icon = "";
    bool checkable = false;
    bool byPlace = false; ///< keys are places on the keyboard (WASD on any layout); lanes handle them themselves
};

class ActionList final : public QObject {
    Q_OBJECT

public:
    explicit ActionList(QObject* parent = nullptr);

    QAction* action(const QString& id) const; ///< null when there is none
    const std::vector<QAction*>& all() const { return actions_; }
    static QString idOf(const QAction* action);
    static QString groupOf(const QAction* action);
    /// The key as people read it, also for keys by place.
    static QString keyText(const QAction* action);
    static bool isByPlace(const QAction* action);

    /// Another key for an action, kept in the settings; an empty sequence removes it. Returns the action that had the
    /// key before and lost it, or null.
    QAction* rebind(QAction* action, const QKeySequence& keys);
    void load(QSettings& settings);
    void save(QSettings& settings) const;
    void resetKeys();

    /// Sets an action on or off; the reason shows in the palette and as a tool tip while it is off.
    static void setAvailable(QAction* action, bool on, const QString& reason = {});
    static QString reasonOf(const QAction* action);

signals:
    void triggered(const QString& id);

private:
    std::vector<QAction*> actions_;
    std::map<QString, QAction*> byId_;
};

} // namespace vitrine::ui
