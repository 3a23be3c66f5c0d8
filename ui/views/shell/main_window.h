// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The main window: menu, tool bar, rail, the stack of views, docks and the status bar. It owns the document, the shared
// time cursor and the list of actions; views get them through ViewServices.

#include <QImage>
#include <QMainWindow>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "ui/widgets/base/view.h"

class QLineEdit;
class QPushButton;
class QSettings;
class QStackedWidget;

namespace vitrine::ui {

class CommandPalette;
class Crumbs;
class DeviceStrip;
class Drawer;
class EdgeBar;
class Rail;
class RunPicker;
class ShortcutsPanel;
class StatusRow;

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

    void openFile(const QString& path); ///< a .vitrine file; a model folder goes to the Run view
    void openView(const QString& id);
    View* currentView() const;
    View* view(const QString& id) const;
    std::vector<View*> views() const { return views_; }
    QLineEdit* searchField() const { return search_; }
    DeviceStrip* deviceStrip() const { return device_; }
    Drawer* drawer() const { return drawer_; }

    /// Files that were opened, newest first.
    QStringList recentFiles() const { return recent_; }

protected:
    void closeEvent(QCloseEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void buildMenus();
    void buildToolBar();
    void buildRailAndViews();
    void buildDocks();
    void connectDocument();
    void onAction(const QString& id);
    using Commands = std::map<QString, std::function<void()>>;
    Commands fileCommands();
    Commands timeCommands();
    Commands panelCommands();
    bool windowAction(const QString& id);
    void openDialog();
    void newSessionDialog();
    void exportImage();
    void runAgain();
    void renameRun();
    void showAbout();
    void updateAvailability();
    void updateRecentMenu();
    void updateTitle();
    void updateForSize();
    void onTimeline(qint64 run);
    void onSelection();
    void saveLayout(const QString& view);
    void restoreLayout(const QString& view);
    void defaultLayout();
    void foldInspector(bool folded);
    void moveFocus(int direction);
    std::optional<TimeRange> markedRange() const; ///< the mark, else the measured range, else the cursor
    std::unique_ptr<QSettings> settings() const;

    QString settingsFile_;
    RunController* runs_;
    DeviceFeed* devices_;
    SessionDocument* document_;
    TimeCursor* time_;
    ActionList* actions_;
    std::vector<View*> views_;
    std::map<QString, View*> viewById_;
    std::vector<QString> visited_; ///< views, for Back and Forward
    std::size_t visitedAt_ = 0;
    bool walkingBack_ = false;
    sessions::RunId shownRun_ = 0;
    QStringList recent_;

    QStackedWidget* stack_ = nullptr;
    EdgeBar* toolBar_ = nullptr;
    QWidget* tools_ = nullptr; ///< what stands in the tool bar
    void fitDeviceStrip();
    Rail* rail_ = nullptr;
    RunPicker *pickerA_ = nullptr, *pickerB_ = nullptr;
    QPushButton *runAgain_ = nullptr, *stop_ = nullptr, *whyOom_ = nullptr;
    Crumbs* crumbs_ = nullptr;
    QLineEdit* search_ = nullptr;
    QAction* searchAction_ = nullptr;
    TextLabel* searchHint_ = nullptr;
    QWidget* searchKey_ = nullptr; ///< the key in a frame, where the hint has nothing to say
    void setSearchHint(const QString& hint);
    DeviceStrip* device_ = nullptr;
    QDockWidget *inspectorDock_ = nullptr, *drawerDock_ = nullptr, *runsDock_ = nullptr;
    QStackedWidget *inspectorStack_ = nullptr, *inspectorHeads_ = nullptr;
    QWidget* inspectorFrame_ = nullptr;
    QPushButton* unfold_ = nullptr; ///< on the head of the inspector where it lies below the view
    bool inspectorFolded_ = false;  ///< only its head is seen: in a low window the plot needs the height
    std::map<QString, int> inspectorPage_;
    Drawer* drawer_ = nullptr;
    QMenu* recentMenu_ = nullptr;
    TextLabel* sessionName_ = nullptr;
    StatusRow* status_ = nullptr;
    CommandPalette* palette_ = nullptr;
    ShortcutsPanel* shortcuts_ = nullptr;
    bool narrow_ = false, hadCursor_ = false;
};

} // namespace vitrine::ui
