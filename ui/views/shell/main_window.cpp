// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/shell/main_window.h"

#include <QAbstractSpinBox>
#include <QApplication>
#include <QCloseEvent>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QInputDialog>
#include <QLineEdit>
#include <QMenu>
#include <QMenuBar>
#include <QMessageBox>
#include <QMimeData>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSettings>
#include <QStackedWidget>
#include <QStatusBar>
#include <algorithm>
#include <set>

#include "ui/models/common/stack_model.h"
#include "ui/models/session/run_summary.h"
#include "ui/views/shell/command_palette.h"
#include "ui/views/shell/drawer.h"
#include "ui/views/shell/rail.h"
#include "ui/views/shell/shortcuts_panel.h"
#include "ui/views/shell/status_row.h"
#include "ui/views/shell/view_list.h"
#include "ui/widgets/base/focus_order.h"
#include "ui/widgets/base/icons.h"
#include "ui/widgets/base/theme.h"

namespace vitrine::ui {

namespace {

constexpr int kRecentFiles = 10;

bool takesKeys(QObject* object) {
    return qobject_cast<QLineEdit*>(object) != nullptr || qobject_cast<QAbstractSpinBox*>(object) != nullptr ||
           qobject_cast<QPlainTextEdit*>(object) != nullptr;
}

} // namespace

MainWindow::MainWindow(RunController* runs, const QString& settingsFile, QWidget* parent, DeviceFeed* devices)
    : QMainWindow(parent), settingsFile_(settingsFile), runs_(runs), devices_(devices),
      document_(new SessionDocument(this)), time_(new TimeCursor(this)), actions_(new ActionList(this)) {
    setObjectName(QStringLiteral("main"));
    setMinimumSize(900, 600);
    setAcceptDrops(true);
    qApp->installEventFilter(this);
    const auto kept = settings();
    if (kept) {
        actions_->load(*kept);
        recent_ = kept->value(QStringLiteral("recent")).toStringList();
        Theme::instance().setMode(
            static_cast<Theme::Mode>(std::clamp(kept->value(QStringLiteral("theme"), 0).toInt(), 0, 2)));
    }
    buildMenus();
    buildToolBar();
    status_ = new StatusRow(document_, this);
    setStatusBar(status_);
    buildRailAndViews();
    buildDocks();
    palette_ = new CommandPalette(*actions_, this);
    palette_->setRefresh([this] { updateAvailability(); });
    shortcuts_ = new ShortcutsPanel(*actions_, this);
    connect(shortcuts_, &ShortcutsPanel::keysChanged, this, [this] {
        if (const auto keep = settings()) {
            actions_->save(*keep);
        }
    });
    connect(actions_, &ActionList::triggered, this, &MainWindow::onAction);
    connect(&Theme::instance(), &Theme::changed, this,
            [this] { whyOom_->setIcon(icon(QStringLiteral("warning"), themeTokens().bad)); });
    const char* const themeIds[] = {"theme.system", "theme.light", "theme.dark"};
    actions_->action(QString::fromLatin1(themeIds[static_cast<int>(Theme::instance().mode())]))->setChecked(true);
    connectDocument();
    resize(1440, 900);
    if (kept) {
        restoreGeometry(kept->value(QStringLiteral("geometry")).toByteArray());
    }
    updateRecentMenu();
    updateTitle();
    openView(QStringLiteral("memory"));
    updateForSize();
    updateAvailability();
    currentView()->setFocus();
}

MainWindow::~MainWindow() {
    // Views hold pointers into what is a child of this window too: they go first.
    for (View* view : views_) {
        view->disconnect(this);
    }
    document_->disconnect(this);
    time_->disconnect(this);
}

std::unique_ptr<QSettings> MainWindow::settings() const {
    return settingsFile_.isEmpty() ? nullptr : std::make_unique<QSettings>(settingsFile_, QSettings::IniFormat);
}

void MainWindow::connectDocument() {
    connect(document_, &SessionDocument::opened, this, [this] {
        if (QFileInfo::exists(document_->path())) {
            recent_.removeAll(document_->path());
            recent_.prepend(document_->path());
            recent_.resize(std::min<qsizetype>(recent_.size(), kRecentFiles));
            if (const auto keep = settings()) {
                keep->setValue(QStringLiteral("recent"), recent_);
            }
            updateRecentMenu();
        }
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
    connect(document_, &SessionDocument::editFailed, this,
            [this](const QString& error) { currentView()->showError(error); });
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
    if (runs_ != nullptr) {
        connect(runs_, &RunController::started, this, [this] { updateAvailability(); });
        connect(runs_, &RunController::ended, this, [this] { updateAvailability(); });
        connect(runs_, &RunController::notice, this, [this](const QString& text) { statusBar()->showMessage(text); });
        connect(runs_, &RunController::refused, this,
                [this](const QString& error) { currentView()->showError(error); });
    }
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
    if (info.isDir()) {
        openView(QStringLiteral("run"));
        currentView()->takeFolder(info.absoluteFilePath());
        return;
    }
    for (View* view : views_) {
        view->showError({});
    }
    if (!info.exists()) {
        currentView()->showError(tr("%1: there is no such file").arg(path));
        return;
    }
    document_->open(path);
}

View* MainWindow::currentView() const {
    return qobject_cast<View*>(stack_->currentWidget());
}

View* MainWindow::view(const QString& id) const {
    const auto found = viewById_.find(id);
    return found == viewById_.end() ? nullptr : found->second;
}

void MainWindow::openView(const QString& id) {
    View* next = view(id);
    if (next == nullptr) {
        return;
    }
    View* before = currentView();
    actions_->action(QStringLiteral("go.") + id)->setChecked(true);
    if (next == before && !visited_.empty()) {
        return;
    }
    if (before != nullptr && !visited_.empty()) {
        saveLayout(before->id());
        before->deactivated();
    }
    stack_->setCurrentWidget(next);
    const auto page = inspectorPage_.find(id);
    if (page != inspectorPage_.end()) {
        inspectorStack_->setCurrentIndex(page->second);
        inspectorHeads_->setCurrentIndex(page->second);
    }
    restoreLayout(id);
    status_->readout()->setText(next->readout());
    status_->priced()->clear();
    setSearchHint({});
    if (!walkingBack_ && (visited_.empty() || visited_[visitedAt_] != id)) {
        visited_.resize(visited_.empty() ? 0 : visitedAt_ + 1);
        visited_.push_back(id);
        visitedAt_ = visited_.size() - 1;
    }
    orderFocus(QList<QWidget*>{toolBar_, rail_, next->header()} + next->focusOrder() +
               QList<QWidget*>{next, inspectorHeads_, inspectorStack_, drawer_});
    next->activated();
    updateAvailability();
}

void MainWindow::updateRecentMenu() {
    recentMenu_->clear();
    for (const QString& path : recent_) {
        QAction* action = recentMenu_->addAction(QFileInfo(path).fileName());
        action->setToolTip(path);
        action->setEnabled(QFileInfo::exists(path));
        connect(action, &QAction::triggered, this, [this, path] { openFile(path); });
    }
    recentMenu_->setEnabled(!recent_.isEmpty());
}

void MainWindow::updateTitle() {
    const QString name = QFileInfo(document_->path()).fileName();
    sessionName_->setText(name);
    sessionName_->adjustSize();
    menuBar()->setCornerWidget(sessionName_, Qt::TopRightCorner); // it keeps the width it had otherwise
    sessionName_->show();
    setWindowTitle(name.isEmpty() ? tr("Vitrine") : tr("%1 - Vitrine").arg(name));
}

void MainWindow::setSearchHint(const QString& hint) {
    searchHint_->setText(hint);
    searchKey_->setVisible(hint.isEmpty() && search_->text().isEmpty() && search_->width() > 100);
}

void MainWindow::closeEvent(QCloseEvent* event) {
    if (const auto keep = settings()) {
        keep->setValue(QStringLiteral("geometry"), saveGeometry());
        saveLayout(currentView()->id());
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
    if (watched == tools_ && (event->type() == QEvent::Resize || event->type() == QEvent::LayoutRequest)) {
        fitDeviceStrip();
    }
    if (watched == search_ && event->type() == QEvent::KeyPress) {
        const auto* key = static_cast<QKeyEvent*>(event);
        if (key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter) {
            const int direction = key->modifiers() & Qt::ShiftModifier ? -1 : 1;
            setSearchHint(currentView()->find(search_->text(), direction));
            return true;
        }
        if (key->key() == Qt::Key_Escape) {
            search_->clear();
            currentView()->setFocus();
            return true;
        }
    }
    if (watched == search_ && (event->type() == QEvent::FocusIn || event->type() == QEvent::FocusOut)) {
        QMetaObject::invokeMethod(this, &MainWindow::updateForSize, Qt::QueuedConnection);
    }
    if (watched == search_ && event->type() == QEvent::KeyRelease) {
        const QString hint = currentView()->find(search_->text(), 0);
        setSearchHint(search_->text().isEmpty() ? QString() : hint);
    }
    return QMainWindow::eventFilter(watched, event);
}

} // namespace vitrine::ui
