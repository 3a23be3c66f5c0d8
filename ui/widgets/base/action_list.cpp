// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/base/action_list.h"

#include <QSettings>

#include "ui/widgets/base/icons.h"

namespace vitrine::ui {

namespace {

constexpr char kGroup[] = "vitrineGroup";
constexpr char kPlaceKeys[] = "vitrinePlaceKeys";
constexpr char kDefaultKeys[] = "vitrineDefaultKeys";
constexpr char kReason[] = "vitrineReason";

constexpr ActionSpec kActions[] = {
    {"file.open", "Open…", "File", "Ctrl+O"},
    {"file.new-session", "New session…", "File", "Ctrl+N"},
    {"file.save-copy", "Save a copy…", "File", "Ctrl+Shift+S"},
    {"file.export-image", "Export view as image…", "File", "Ctrl+E", "export"},
    {"file.close", "Close session", "File", "Ctrl+W"},
    {"file.quit", "Quit", "File", "Ctrl+Q"},
    {"edit.undo", "Undo", "Edit", "Ctrl+Z"},
    {"edit.redo", "Redo", "Edit", "Ctrl+Shift+Z"},
    {"edit.copy", "Copy", "Edit", "Ctrl+C", "copy"},
    {"edit.copy-why", "Copy as text", "Edit", "Ctrl+Shift+C", "copy"},
    {"edit.find", "Find", "Edit", "/ Ctrl+F", "search"},
    {"edit.find-next", "Find next", "Edit", "F3"},
    {"edit.find-previous", "Find previous", "Edit", "Shift+F3"},
    {"edit.rename", "Rename run…", "Edit", "F2"},
    {"run.start", "Run", "Run", "Ctrl+Return", "run"},
    {"run.queue", "Add to the queue", "Run", "Ctrl+Shift+Return"},
    {"run.again", "Run again", "Run", "Ctrl+R", "run-again"},
    {"run.stop", "Stop", "Run", "", "stop"},
    {"run.release", "Release device memory", "Run", ""},
    {"zoom.in", "Zoom in", "Move and zoom", "W", "", false, true},
    {"zoom.out", "Zoom out", "Move and zoom", "S", "", false, true},
    {"pan.left", "Move left", "Move and zoom", "A", "", false, true},
    {"pan.right", "Move right", "Move and zoom", "D", "", false, true},
    {"zoom.fit", "Centre, then fit the measured range", "Move and zoom", "F"},
    {"zoom.all", "Fit all", "Move and zoom", "Home Shift+F"},
    {"zoom.back", "Previous zoom", "Move and zoom", "Backspace"},
    {"zoom.follow", "Follow the run", "Move and zoom", "End", "follow", true},
    {"select.next", "Next in lane", "Select and measure", "."},
    {"select.previous", "Previous in lane", "Select and measure", ","},
    {"select.clear", "Clear selection", "Select and measure", "Escape"},
    {"measure.filter", "Narrow all views to the measured range", "Select and measure", "Return", "filter"},
    {"measure.clear-filter", "Remove the last filter", "Select and measure", "Shift+Backspace"},
    {"mark.set", "Mark the cursor or the measured range", "Select and measure", "M"},
    {"mark.keep", "Keep the mark as a note", "Select and measure", "Shift+M"},
    {"mark.remove", "Remove the mark or the note at the cursor", "Select and measure", "Del"},
    {"select.link-back", "Back along links", "Select and measure", "["},
    {"select.link-next", "Forward along links", "Select and measure", "]"},
    {"go.peak-next", "Go to next peak", "Go", "P"},
    {"go.peak-previous", "Go to previous peak", "Go", "Shift+P"},
    {"go.oom", "Why out of memory", "Go", "O", "warning"},
    {"go.run", "Run view", "Go", "Ctrl+1", "run"},
    {"go.queue", "Queue", "Go", "Ctrl+Shift+1", "run"},
    {"go.memory", "Memory view", "Go", "Ctrl+2", "memory"},
    {"go.kernels", "Kernels view", "Go", "Ctrl+3", "kernels"},
    {"go.kv-cache", "KV cache view", "Go", "Ctrl+4", "kv-cache"},
    {"go.batching", "Batching view", "Go", "Ctrl+5", "batching"},
    {"go.mask", "Mask Lab view", "Go", "Ctrl+6", "mask"},
    {"go.load", "Load view", "Go", "Ctrl+7", "load"},
    {"go.precision", "Precision view", "Go", "Ctrl+=", "precision"},
    {"go.fine-tune", "Fine-tune view", "Go", "Ctrl+8", "fine-tune"},
    {"go.rl", "RL view", "Go", "Ctrl+Shift+8", "rl"},
    {"go.planner", "Planner view", "Go", "Ctrl+9", "planner"},
    {"go.compare", "Compare view", "Go", "Ctrl+0", "compare"},
    {"go.sessions", "Sessions view", "Go", "Ctrl+-", "sessions"},
    {"go.back", "Back", "Go", "Alt+Left"},
    {"go.forward", "Forward", "Go", "Alt+Right"},
    {"compare.baseline", "Set as baseline", "Compare", "B"},
    {"compare.swap", "Swap A and B", "Compare", "X", "swap"},
    {"view.table", "Show as table", "View", "T"},
    {"view.time-unit", "Next time unit", "View", "Ctrl+T"},
    {"view.smooth", "Smooth rewards and lengths", "View", "", "", true},
    {"kernels.trace", "Kernels: trace", "Kernels", "", "kernels"},
    {"kernels.table", "Kernels: table", "Kernels", "", "kernels"},
    {"kernels.flame", "Kernels: flame", "Kernels", "", "kernels"},
    {"kernels.variants", "Kernels: variants", "Kernels", "", "kernels"},
    {"kernels.arrows", "Kernels: arrows from ops to kernels", "Kernels"},
    {"kernels.compare", "Kernels: A/B of the chosen op's variants", "Kernels"},
    {"batching.slots", "Batching: slots", "Batching", "", "batching"},
    {"batching.requests", "Batching: requests", "Batching", "", "batching"},
    {"batching.sweep", "Batching: sweep over slots", "Batching", "", "batching"},
    {"batching.running", "Batching: only requests that run at the cursor", "Batching", "R", "batching"},
    {"batching.axis", "Batching: time or steps", "Batching", "", "batching"},
    {"mask.go", "Mask Lab: go to a cell", "Mask Lab", "G", "search"},
    {"mask.measure", "Mask Lab: measure", "Mask Lab", "", "mask"},
    {"mask.a", "Mask Lab: mask A", "Mask Lab", "", "mask"},
    {"mask.b", "Mask Lab: mask B", "Mask Lab", "", "mask"},
    {"mask.difference", "Mask Lab: difference of A and B", "Mask Lab", "", "mask"},
    {"mask.blocks", "Mask Lab: blocks of the mask", "Mask Lab", "", "mask"},
    {"mask.scores", "Mask Lab: scores", "Mask Lab", "", "mask"},
    {"mask.link", "Mask Lab: link rows and columns", "Mask Lab"},
    {"mask.catalogue", "Mask Lab: catalogue", "Mask Lab"},
    {"mask.layers", "Mask Lab: layers of a model", "Mask Lab"},
    {"mask.export", "Mask Lab: export arrays…", "Mask Lab", "", "export"},
    {"mask.copy-picture", "Mask Lab: copy the picture", "Mask Lab", "", "copy"},
    {"mask.save-png", "Mask Lab: save the picture as PNG…", "Mask Lab"},
    {"mask.save-svg", "Mask Lab: save the picture as SVG…", "Mask Lab"},
    {"lane.pin", "Pin lane to the top", "View", "Shift+T", "pin"},
    {"lane.collapse", "Collapse lane", "View", "C"},
    {"panel.inspector", "Inspector", "Panels", "I", "", true},
    {"panel.drawer", "Drawer", "Panels", "Q", "", true},
    {"panel.runs", "Runs", "Panels", "Ctrl+Shift+R", "", true},
    {"panel.next", "Next part of the window", "Panels", "F6"},
    {"panel.previous", "Previous part of the window", "Panels", "Shift+F6"},
    {"panel.reset", "Reset layout", "Panels"},
    {"theme.system", "Theme of the system", "View", "", "", true},
    {"theme.light", "Light theme", "View", "", "", true},
    {"theme.dark", "Dark theme", "View", "", "", true},
    {"tools.palette", "Command palette", "Tools", "Ctrl+Shift+P"},
    {"help.shortcuts", "Shortcuts", "Help", "?"},
    {"help.about", "About Vitrine", "Help"},
};

QList<QKeySequence> sequences(const QString& keys) {
    QList<QKeySequence> list;
    for (const QString& one : keys.split(QLatin1Char(' '), Qt::SkipEmptyParts)) {
        list << QKeySequence(one, QKeySequence::PortableText);
    }
    return list;
}

} // namespace

ActionList::ActionList(QObject* parent) : QObject(parent) {
    for (const ActionSpec& spec : kActions) {
        auto* action = new QAction(tr(spec.text), this);
        const QString id = QString::fromLatin1(spec.id);
        action->setObjectName(id);
        action->setProperty(kGroup, tr(spec.group));
        action->setCheckable(spec.checkable);
        action->setProperty(kDefaultKeys, QString::fromLatin1(spec.keys));
        if (spec.byPlace) {
            action->setProperty(kPlaceKeys, QString::fromLatin1(spec.keys));
        } else {
            action->setShortcuts(sequences(QString::fromLatin1(spec.keys)));
        }
        if (*spec.icon != '\0') {
            action->setIcon(icon(QString::fromLatin1(spec.icon)));
        }
        action->setIconVisibleInMenu(false);
        connect(action, &QAction::triggered, this, [this, id] { emit triggered(id); });
        actions_.push_back(action);
        byId_[id] = action;
    }
}

QAction* ActionList::action(const QString& id) const {
    const auto found = byId_.find(id);
    return found == byId_.end() ? nullptr : found->second;
}

QString ActionList::idOf(const QAction* action) {
    return action->objectName();
}

QString ActionList::groupOf(const QAction* action) {
    return action->property(kGroup).toString();
}

bool ActionList::isByPlace(const QAction* action) {
    return action->property(kPlaceKeys).isValid();
}

QString ActionList::keyText(const QAction* action) {
    if (isByPlace(action)) {
        return action->property(kPlaceKeys).toString();
    }
    return action->shortcut().toString(QKeySequence::NativeText);
}

QAction* ActionList::rebind(QAction* action, const QKeySequence& keys) {
    QAction* loser = nullptr;
    for (QAction* other : actions_) {
        if (other != action && !keys.isEmpty() && other->shortcuts().contains(keys)) {
            QList<QKeySequence> left = other->shortcuts();
            left.removeAll(keys);
            other->setShortcuts(left);
            loser = other;
        }
    }
    action->setShortcuts(keys.isEmpty() ? QList<QKeySequence>{} : QList<QKeySequence>{keys});
    return loser;
}

void ActionList::load(QSettings& settings) {
    settings.beginGroup(QStringLiteral("keys"));
    for (QAction* action : actions_) {
        const QVariant kept = settings.value(idOf(action));
        if (kept.isValid() && !isByPlace(action)) {
            action->setShortcuts(sequences(kept.toString()));
        }
    }
    settings.endGroup();
}

void ActionList::save(QSettings& settings) const {
    settings.beginGroup(QStringLiteral("keys"));
    settings.remove(QString());
    for (const QAction* action : actions_) {
        QStringList keys;
        for (const QKeySequence& one : action->shortcuts()) {
            keys << one.toString(QKeySequence::PortableText);
        }
        const QString now = keys.join(QLatin1Char(' '));
        if (!isByPlace(action) && now != action->property(kDefaultKeys).toString()) {
            settings.setValue(idOf(action), now);
        }
    }
    settings.endGroup();
}

void ActionList::resetKeys() {
    for (QAction* action : actions_) {
        if (!isByPlace(action)) {
            action->setShortcuts(sequences(action->property(kDefaultKeys).toString()));
        }
    }
}

void ActionList::setAvailable(QAction* action, bool on, const QString& reason) {
    action->setEnabled(on);
    action->setProperty(kReason, on ? QString() : reason);
    action->setToolTip(on || reason.isEmpty() ? action->text() : reason);
}

QString ActionList::reasonOf(const QAction* action) {
    return action->property(kReason).toString();
}

} // namespace vitrine::ui
