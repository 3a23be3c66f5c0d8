// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// How the main window is put together; what it does stands in main_window.cpp.
#include <QActionGroup>
#include <QMenu>
#include <QMenuBar>
#include <QVBoxLayout>

#include "ui/views/common/session_edits.h"
#include "ui/views/shell/drawer.h"
#include "ui/views/shell/main_window.h"
#include "ui/views/shell/rail.h"
#include "ui/views/shell/session_commands.h"
#include "ui/views/shell/status_row.h"
#include "ui/views/shell/tool_row.h"
#include "ui/views/shell/view_list.h"
#include "ui/views/shell/window_docks.h"
#include "ui/widgets/base/notice_bar.h"

namespace vitrine::ui {

/// An empty id is a line between groups.
QMenu* MainWindow::addMenu(const QString& title, const QStringList& actions) {
    QMenu* menu = menuBar()->addMenu(title);
    for (const QString& id : actions) {
        if (id.isEmpty()) {
            menu->addSeparator();
        } else if (QAction* action = actions_->action(id)) {
            menu->addAction(action);
        }
    }
    return menu;
}

void MainWindow::buildMenus() {
    QMenuBar* bar = menuBar();
    bar->setFixedHeight(26);
    bar->setNativeMenuBar(false);
    const QString none;
    QMenu* file = addMenu(tr("File"), {"file.open", "file.new-session"});
    sessions_->setRecentMenu(file->addMenu(tr("Open recent")));
    for (const char* id : {"", "file.save-copy", "file.export-image", "", "file.close", "file.quit"}) {
        *id == '\0' ? (void)file->addSeparator() : file->addAction(actions_->action(QString::fromLatin1(id)));
    }
    addMenu(tr("Edit"), {"edit.undo", "edit.redo", none, "edit.copy", "edit.copy-why", none, "edit.find",
                         "edit.find-next", "edit.find-previous", none, "edit.rename"});
    QMenu* viewMenu =
        addMenu(tr("View"), {"view.table", "view.time-unit", "view.smooth", none, "zoom.in", "zoom.out", "zoom.fit",
                             "zoom.all", "zoom.back", "zoom.follow", none, "lane.pin", "lane.collapse", none,
                             "panel.inspector", "panel.drawer", "panel.runs", "panel.reset", none});
    QMenu* theme = viewMenu->addMenu(tr("Theme"));
    auto* themes = new QActionGroup(this);
    for (const char* id : {"theme.system", "theme.light", "theme.dark"}) {
        QAction* action = actions_->action(QString::fromLatin1(id));
        themes->addAction(action);
        theme->addAction(action);
    }
    addMenu(tr("Run"), {"run.start", "run.queue", "run.again", "run.stop"});
    QStringList go = {"go.peak-next", "go.peak-previous", "go.oom", none};
    for (const ViewEntry& entry : viewEntries()) {
        go << QStringLiteral("go.") + QString::fromLatin1(entry.id);
    }
    addMenu(tr("Go"), go + QStringList{none, "go.back", "go.forward"});
    addMenu(tr("Tools"), {"tools.palette", none, "compare.baseline", "compare.swap", none, "measure.filter",
                          "measure.clear-filter"});
    addMenu(tr("Help"), {"help.shortcuts", none, "help.about"});
    sessionName_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, bar);
    sessionName_->setContentsMargins(8, 0, 12, 0);
    sessionName_->setFixedHeight(25);
    sessionName_->setElide(true); // paints in its own colour: a menu bar gives its corner another palette
    bar->setCornerWidget(sessionName_, Qt::TopRightCorner);
    for (QAction* action : actions_->all()) {
        addAction(action); // shortcuts work wherever the focus is
    }
}

void MainWindow::buildToolBar() {
    toolBar_ = new EdgeBar(tr("Tools"), Qt::BottomEdge, this);
    toolBar_->setObjectName(QStringLiteral("toolbar"));
    toolBar_->setFixedHeight(40);
    tools_ = new ToolRow(
        context_, [this](const QString& text, int direction) { return currentView()->find(text, direction); },
        toolBar_);
    toolBar_->addWidget(tools_);
    addToolBar(Qt::TopToolBarArea, toolBar_);
    connect(tools_->search(), &SearchField::escaped, this, [this] { currentView()->setFocus(); });
    connect(tools_, &ToolRow::focusFreed, this, [this] { currentView()->setFocus(); });
}

void MainWindow::buildViews() {
    rail_ = new Rail(this);
    addToolBar(Qt::LeftToolBarArea, rail_);
    stack_ = new ViewStack(context_, rail_, this);
    auto* centre = new QWidget(this);
    auto* column = new QVBoxLayout(centre);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    const auto does = [this](const char* id) {
        return [action = actions_->action(QString::fromLatin1(id))] { action->trigger(); };
    };
    keepingBar_ =
        new NoticeBar(NoticeBar::Tone::Warning,
                      {{tr("Save a copy…"), does("file.save-copy")}, {tr("Close"), does("file.close")}}, centre);
    undoBar_ =
        new NoticeBar(NoticeBar::Tone::Plain, {{tr("Undo"), [this] { context_.edits->stack()->undo(); }}}, centre);
    modelBar_ = new NoticeBar(NoticeBar::Tone::Plain,
                              {{tr("Find the model…"), [this] { sessions_->findModel(); }},
                               {tr("Not now"), [this] { sessions_->leaveModel(); }}},
                              centre);
    column->addWidget(keepingBar_);
    column->addWidget(modelBar_);
    column->addWidget(undoBar_);
    column->addWidget(stack_, 1);
    setCentralWidget(centre);
    connectEdits();
    docks_ = new WindowDocks(context_, settingsFile_, this);
    timeCommands_.emplace(context_, docks_);
    for (View* view : views()) {
        docks_->addView(view);
        connectView(view);
    }
    connect(stack_, &ViewStack::leaving, this, [this](const View* view) { docks_->keepLayout(view); });
    connect(stack_, &ViewStack::entering, this, &MainWindow::onEntering);
    connect(stack_, &ViewStack::entered, this, &MainWindow::updateAvailability);
}

/// A bar over all views offers for some seconds to bring back what was deleted.
void MainWindow::connectEdits() {
    constexpr int kUndoBarMs = 8000;
    undoBarTimer_.setSingleShot(true);
    undoBarTimer_.setInterval(kUndoBarMs);
    connect(&undoBarTimer_, &QTimer::timeout, undoBar_, [this] { undoBar_->say({}); });
    connect(context_.edits->stack(), &QUndoStack::indexChanged, this, [this] {
        undoBar_->say({}); // whatever it offered is no longer the last edit
        updateAvailability();
    });
    connect(context_.edits, &SessionEdits::deleted, this, [this](const QString& what) {
        undoBar_->say(what);
        undoBarTimer_.start();
    });
    connect(document_, &SessionDocument::keepingChanged, this, [this] {
        const SessionKeeping keeping = document_->keeping();
        keepingBar_->say(keepingSentence(keeping, document_->path()));
    });
    connect(document_, &SessionDocument::closed, this, [this] { keepingBar_->say({}); });
    connect(sessions_, &SessionCommands::modelMissing, modelBar_, &NoticeBar::say);
}

void MainWindow::connectView(View* view) {
    connect(view, &View::fileWanted, this, &MainWindow::openFile);
    connect(view, &View::searchWanted, this, [this] { tools_->search()->takeFocus(); });
    connect(view, &View::noteWanted, this, [this](qint64 note) { docks_->openDrawer()->editNote(note); });
    // What a hidden view says of itself is asked when it is shown.
    connect(view, &View::availabilityChanged, this, [this, view] {
        if (view == currentView()) {
            updateAvailability();
        }
    });
    connect(view, &View::inspectorWanted, this, [this, view] {
        if (view == currentView()) {
            docks_->followView(view);
        }
    });
    connect(view, &View::readoutChanged, this, [this, view](const QString& text) {
        if (view == currentView()) {
            status_->readout()->setText(text);
        }
    });
    connect(view, &View::priced, this, [this, view](const QString& text) {
        if (view == currentView()) {
            status_->priced()->setText(text);
        }
    });
}

} // namespace vitrine::ui
