// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/shell/main_window.h"

#include <QAbstractButton>
#include <QAbstractSpinBox>
#include <QApplication>
#include <QCloseEvent>
#include <QDragEnterEvent>
#include <QFileInfo>
#include <QMenuBar>
#include <QMimeData>
#include <QPlainTextEdit>
#include <algorithm>

#include "base/error.h"
#include "engine/checkpoint/gguf_file.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/stack_model.h"
#include "ui/views/common/session_edits.h"
#include "ui/views/shell/command_palette.h"
#include "ui/views/shell/device_strip.h"
#include "ui/views/shell/drawer.h"
#include "ui/views/shell/rail.h"
#include "ui/views/shell/session_commands.h"
#include "ui/views/shell/settings_file.h"
#include "ui/views/shell/shortcuts_panel.h"
#include "ui/views/shell/status_row.h"
#include "ui/views/shell/tool_row.h"
#include "ui/views/shell/window_docks.h"
#include "ui/widgets/base/focus_order.h"

namespace vitrine::ui {

namespace {

constexpr int kNarrowWidth = 1200;
constexpr int kMainWindowSmallWidth = 1100;

bool takesKeys(QObject* object) {
    return qobject_cast<QLineEdit*>(object) != nullptr || qobject_cast<QAbstractSpinBox*>(object) != nullptr ||
           qobject_cast<QPlainTextEdit*>(object) != nullptr;
}

/// A model folder, or a file that says by its name or its first bytes that it is a GGUF file.
bool isModel(const QFileInfo& info) {
    if (info.isDir() || !info.isFile()) {
        return info.isDir();
    }
    try {
        return info.suffix() == QLatin1String("gguf") || engine::GgufFile::is(info.filePath().toStdString());
    } catch (const base::Error&) {
        return false; // it cannot be read, which the one who opens it says
    }
}

} // namespace

MainWindow::MainWindow(RunController* runs, const QString& settingsFile, QWidget* parent, DeviceFeed* devices)
    : QMainWindow(parent), settingsFile_(settingsFile), runs_(runs), document_(new SessionDocument(this)),
      time_(new TimeCursor(this)), actions_(new ActionList(this)),
      context_{document_, time_, runs, actions_, settingsFile, devices, new SessionEdits(document_, this)} {
    setObjectName(QStringLiteral("main"));
    setMinimumSize(900, 600);
    setAcceptDrops(true);
    qApp->installEventFilter(this);
    if (const auto kept = keptSettings(settingsFile_)) {
        actions_->load(*kept);
        Theme::instance().setMode(
            static_cast<Theme::Mode>(std::clamp(kept->value(QStringLiteral("theme"), 0).toInt(), 0, 2)));
    }
    sessions_ = new SessionCommands(context_, settingsFile_, this);
    buildMenus();
    buildToolBar();
    status_ = new StatusRow(document_, this);
    setStatusBar(status_);
    buildViews();
    palette_ = new CommandPalette(*actions_, this);
    palette_->setRefresh([this] { updateAvailability(); });
    shortcuts_ = new ShortcutsPanel(*actions_, this);
    connect(shortcuts_, &ShortcutsPanel::keysChanged, this, [this] {
        if (const auto keep = keptSettings(settingsFile_)) {
            actions_->save(*keep);
        }
    });
    connect(actions_, &ActionList::triggered, this, &MainWindow::onAction);
    connect(sessions_, &SessionCommands::openWanted, this, &MainWindow::openFile);
    connect(sessions_, &SessionCommands::failed, this,
            [this](const QString& error) { currentView()->showError(error); });
    connectDocument();
    connectRuns();
    restoreChoices();
    updateTitle();
    openView(QStringLiteral("memory"));
    updateForSize();
    updateAvailability();
    currentView()->setFocus();
}

MainWindow::~MainWindow() {
    // Views hold pointers into what is a child of this window too: they go first.
    for (View* view : views()) {
        view->disconnect(this);
    }
    document_->disconnect(this);
    time_->disconnect(this);
    context_.edits->stack()->disconnect(this); // it clears itself when it goes
}

QLineEdit* MainWindow::searchField() const {
    return tools_->search();
}

DeviceStrip* MainWindow::deviceStrip() const {
    return tools_->device();
}

Drawer* MainWindow::drawer() const {
    return docks_->drawer();
}

QStringList MainWindow::recentFiles() const {
    return sessions_->recentFiles();
}

/// What the settings keep of the window itself: its theme and its place on the screen.
void MainWindow::restoreChoices() {
    const char* const themes[] = {"theme.system", "theme.light", "theme.dark"};
    actions_->action(QString::fromLatin1(themes[static_cast<int>(Theme::instance().mode())]))->setChecked(true);
    resize(1440, 900);
    if (const auto kept = keptSettings(settingsFile_)) {
        restoreGeometry(kept->value(QStringLiteral("geometry")).toByteArray());
    }
}

void MainWindow::connectDocument() {
    connect(document_, &SessionDocument::opened, this, [this] {
        updateTitle();
        updateAvailability();
    });
    connect(document_, &SessionDocument::closed, this, [this] {
        shownRun_ = 0;
        time_->reset({});
        updateTitle();
        status_->refresh();
    });
    connect(document_, &SessionDocument::openFailed, this, [this](const QString&, const QString& error) {
        updateTitle();
        currentView()->showError(error);
    });
    for (const auto sentence : {&SessionDocument::editFailed, &SessionDocument::runDamaged}) {
        connect(document_, sentence, this, [this](const QString& error) { currentView()->showError(error); });
    }
    connect(document_, &SessionDocument::runsChanged, this, [this] {
        updateAvailability();
        status_->refresh();
    });
    connect(document_, &SessionDocument::selectionChanged, this, &MainWindow::onSelection);
    connect(document_, &SessionDocument::timelineChanged, this, &MainWindow::onTimeline);
    connect(time_, &TimeCursor::measuredChanged, this, &MainWindow::updateAvailability);
    connect(time_, &TimeCursor::filtersChanged, this, &MainWindow::updateAvailability);
    connect(time_, &TimeCursor::markChanged, this, &MainWindow::updateAvailability);
    connect(time_, &TimeCursor::cursorChanged, this, [this] {
        if (time_->cursor().has_value() != hadCursor_) {
            hadCursor_ = time_->cursor().has_value();
            updateAvailability();
        }
    });
}

void MainWindow::connectRuns() {
    if (runs_ == nullptr) {
        return;
    }
    connect(runs_, &RunController::started, this, [this] { updateAvailability(); });
    connect(runs_, &RunController::ended, this, [this] { updateAvailability(); });
    connect(runs_, &RunController::notice, this, [this](const QString& text) { statusBar()->showMessage(text); });
    connect(runs_, &RunController::refused, this, [this](const QString& error) { currentView()->showError(error); });
}

void MainWindow::onSelection() {
    if (document_->runA() != shownRun_) {
        shownRun_ = document_->runA();
        time_->reset({});
        onTimeline(shownRun_);
    }
    document_->timeline(document_->runB());
    updateAvailability();
    status_->refresh();
}

void MainWindow::onTimeline(qint64 run) {
    if (run == 0 || run != document_->runA()) {
        return;
    }
    const TimelineState& state = document_->timeline(run);
    if (state.timeline) {
        const base::TimeNs begin = state.timeline->begin();
        TimeRange extent{begin, std::max(state.timeline->end(), begin + kShortestShown)};
        if (!state.timeline->memory().outOfMemory().empty()) {
            extent.end += extent.length() / 22; // room for the request that failed
        }
        if (time_->extent().length() <= 0) {
            time_->reset(extent);
        } else {
            time_->setExtent(extent);
        }
    }
    if (!state.error.isEmpty()) {
        currentView()->showError(state.error);
    }
    status_->refresh();
    updateAvailability();
}

void MainWindow::openFile(const QString& path) {
    const QFileInfo info(path);
    if (isModel(info)) {
        openView(QStringLiteral("run"));
        currentView()->takeFolder(info.absoluteFilePath());
        return;
    }
    for (View* view : views()) {
        view->showError({});
    }
    if (!info.exists()) {
        currentView()->showError(tr("%1: there is no such file").arg(path));
        return;
    }
    if (info.suffix().compare(QLatin1String("jsonl"), Qt::CaseInsensitive) == 0) {
        openView(QStringLiteral("fine-tune"));
        currentView()->takeData(info.absoluteFilePath());
        return;
    }
    document_->open(path);
}

/// Another view is on top: everything around it follows.
void MainWindow::onEntering(View* view) {
    docks_->show(view);
    status_->readout()->setText(view->readout());
    status_->priced()->clear();
    tools_->search()->setHint({});
    orderFocus(QList<QWidget*>{toolBar_, rail_, view->header()} + view->focusOrder() + QList<QWidget*>{view} +
               docks_->focusOrder());
}

void MainWindow::updateTitle() {
    const QString name = QFileInfo(document_->path()).fileName();
    sessionName_->setText(name);
    sessionName_->adjustSize();
    menuBar()->setCornerWidget(sessionName_, Qt::TopRightCorner); // it keeps the width it had otherwise
    sessionName_->show();
    setWindowTitle(name.isEmpty() ? tr("Vitrine") : tr("%1 - Vitrine").arg(name));
}

void MainWindow::updateForSize() {
    const bool narrow = width() < kNarrowWidth;
    rail_->setNarrow(narrow);
    tools_->setNarrow(narrow, width() < kMainWindowSmallWidth);
    docks_->setNarrow(narrow);
}

void MainWindow::moveFocus(int direction) {
    QList<QWidget*> stops = {tools_->firstStop(),
                             rail_->buttonOf(actions_->action(QStringLiteral("go.") + currentView()->id()))};
    stops << currentView()->header()->findChildren<QAbstractButton*>().value(0) << currentView()->focusStops()
          << docks_->stops();
    stops.removeAll(nullptr);
    const QWidget* focus = QApplication::focusWidget();
    int at = -1;
    for (int i = 0; i < stops.size(); ++i) {
        if (focus != nullptr && (stops[i] == focus || stops[i]->isAncestorOf(focus))) {
            at = i;
        }
    }
    at = at < 0 ? (direction > 0 ? 0 : static_cast<int>(stops.size()) - 1)
                : (at + direction + static_cast<int>(stops.size())) % static_cast<int>(stops.size());
    QWidget* target = stops[at];
    if (target->focusPolicy() == Qt::NoFocus) {
        for (QWidget* child : target->findChildren<QWidget*>()) {
            if (child->focusPolicy() & Qt::TabFocus && child->isVisible()) {
                target = child;
                break;
            }
        }
    }
    target->setFocus(Qt::TabFocusReason);
}

void MainWindow::closeEvent(QCloseEvent* event) {
    if (const auto keep = keptSettings(settingsFile_)) {
        keep->setValue(QStringLiteral("geometry"), saveGeometry());
        docks_->keepLayout(currentView());
    }
    QMainWindow::closeEvent(event);
}

void MainWindow::resizeEvent(QResizeEvent* event) {
    QMainWindow::resizeEvent(event);
    if (palette_ != nullptr) {
        updateForSize();
    }
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
    if (event->mimeData()->hasUrls() && event->mimeData()->urls().first().isLocalFile()) {
        event->acceptProposedAction();
    }
}

void MainWindow::dropEvent(QDropEvent* event) {
    openFile(event->mimeData()->urls().first().toLocalFile());
    event->acceptProposedAction();
}

bool MainWindow::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() == QEvent::ShortcutOverride && takesKeys(watched)) {
        // In a field these keys belong to the field, not to the plots.
        const int key = static_cast<QKeyEvent*>(event)->key();
        if (key == Qt::Key_Return || key == Qt::Key_Enter || key == Qt::Key_Escape || key == Qt::Key_End ||
            key == Qt::Key_Home) {
            event->accept();
            return true;
        }
    }
    return QMainWindow::eventFilter(watched, event);
}

} // namespace vitrine::ui
