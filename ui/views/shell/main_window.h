// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The main window: menu, tool bar, rail, the stack of views, docks and the status bar. It owns the document, the shared
// time cursor and the list of actions, which views get through ViewServices. It joins its parts: a command goes to the
// view that is shown, then to the commands about files, time and docks; what the document reports goes to the axis of
// time and to the status bar.

#include <QMainWindow>
#include <QTimer>
#include <functional>
#include <map>
#include <optional>

#include "ui/views/shell/time_commands.h"
#include "ui/views/shell/view_stack.h"
#include "ui/widgets/base/view.h"

class QLineEdit;

namespace vitrine::ui {

class CommandPalette;
class DeviceStrip;
class Drawer;
class EdgeBar;
class NoticeBar;
class Rail;
class SessionCommands;
class ShortcutsPanel;
class StatusRow;
class ToolRow;
class WindowDocks;

class MainWindow final : public QMainWindow {
    Q_OBJECT

public:
    /// `runs` may be null: nothing can be started then. `settingsFile` empty keeps nothing (tests, --render).
    /// `devices` may be null too: then nothing is said of this machine.
    MainWindow(RunController* runs, const QString& settingsFile, QWidget* parent = nullptr,
               DeviceFeed* devices = nullptr);
    ~MainWindow() override;

    SessionDocument* document() const { return document_; }
    TimeCursor* timeCursor() const { return time_; }
    ActionList* actionList() const { return actions_; }

    /// A session; a model folder or GGUF file goes to the Run view, .jsonl to Fine-tune.
    void openFile(const QString& path);
    void openView(const QString& id) { stack_->open(id); }
    View* currentView() const { return stack_->shown(); }
    View* view(const QString& id) const { return stack_->view(id); }
    std::vector<View*> views() const { return stack_->views(); }
    QLineEdit* searchField() const;
    DeviceStrip* deviceStrip() const;
    NoticeBar* keepingBar() const { return keepingBar_; }
    NoticeBar* modelBar() const { return modelBar_; }
    NoticeBar* undoBar() const { return undoBar_; }
    StatusRow* statusRow() const { return status_; }
    SessionCommands* sessionCommands() const { return sessions_; }
    Drawer* drawer() const;

    /// Files that were opened, newest first.
    QStringList recentFiles() const;

protected:
    void closeEvent(QCloseEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    using Commands = std::map<QString, std::function<void()>>;

    void buildMenus();
    QMenu* addMenu(const QString& title, const QStringList& actions);
    void buildToolBar();
    void buildViews();
    void connectEdits();
    void connectView(View* view);
    void connectDocument();
    void connectRuns();
    void restoreChoices();

    void onAction(const QString& id);
    bool windowAction(const QString& id);
    Commands viewCommands();
    Commands runCommands();
    Commands panelCommands();
    void setTheme(Theme::Mode mode);
    void exportImage();
    void showAbout();

    void onEntering(View* view);
    void onTimeline(qint64 run);
    void onSelection();
    void updateAvailability();
    void updateTitle();
    void updateForSize();
    void moveFocus(int direction);

    QString settingsFile_;
    RunController* runs_;
    SessionDocument* document_;
    TimeCursor* time_;
    ActionList* actions_;
    ViewServices context_; ///< of everything in the window
    SessionCommands* sessions_ = nullptr;
    WindowDocks* docks_ = nullptr;
    std::optional<TimeCommands> timeCommands_;
    EdgeBar* toolBar_ = nullptr;
    ToolRow* tools_ = nullptr;
    Rail* rail_ = nullptr;
    ViewStack* stack_ = nullptr;
    StatusRow* status_ = nullptr;
    NoticeBar* keepingBar_ = nullptr; ///< says that the session is not saved
    NoticeBar* modelBar_ = nullptr;   ///< offers to look for the model of run A
    NoticeBar* undoBar_ = nullptr;
    QTimer undoBarTimer_;
    TextLabel* sessionName_ = nullptr; ///< in the corner of the menu bar
    CommandPalette* palette_ = nullptr;
    ShortcutsPanel* shortcuts_ = nullptr;
    sessions::RunId shownRun_ = 0;
    bool hadCursor_ = false;
};

} // namespace vitrine::ui
