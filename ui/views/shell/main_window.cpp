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
#include <QProgressBar>
#include <QPushButton>
#include <QSettings>
#include <QStackedWidget>
#include <QStatusBar>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "ui/models/format.h"
#include "ui/models/run_facts.h"
#include "ui/views/shell/drawer.h"
#include "ui/views/shell/overlays.h"
#include "ui/views/shell/rail.h"
#include "ui/views/view_list.h"
#include "ui/widgets/icons.h"
#include "ui/widgets/theme.h"

namespace vitrine::ui {

namespace {

constexpr int kLayoutVersion = 1;
constexpr int kNarrowWidth = 1200;
constexpr int kTinyWidth = 1100;
constexpr int kRecentFiles = 10;

bool takesKeys(QObject* object) {
    return qobject_cast<QLineEdit*>(object) != nullptr || qobject_cast<QAbstractSpinBox*>(object) != nullptr ||
           qobject_cast<QPlainTextEdit*>(object) != nullptr;
}

} // namespace

MainWindow::MainWindow(RunController* runs, const QString& settingsFile, QWidget* parent)
    : QMainWindow(parent), settingsFile_(settingsFile), runs_(runs), document_(new SessionDocument(this)),
      time_(new TimeCursor(this)), actions_(new ActionList(this)) {
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
    buildStatusBar();
    buildRailAndViews();
    buildDocks();
    palette_ = new CommandPalette(*actions_, this);
    palette_->setRefresh([this] { updateAvailability(); });
    shortcuts_ = new ShortcutsPage(*actions_, this);
    connect(shortcuts_, &ShortcutsPage::keysChanged, this, [this] {
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
        showStatus();
    });
    connect(document_, &SessionDocument::openFailed, this, [this](const QString&, const QString& error) {
        updateTitle();
        currentView()->showError(error);
    });
    connect(document_, &SessionDocument::editFailed, this,
            [this](const QString& error) { currentView()->showError(error); });
    connect(document_, &SessionDocument::runsChanged, this, [this] {
        updateAvailability();
        showStatus();
    });
    connect(document_, &SessionDocument::selectionChanged, this, &MainWindow::onSelection);
    connect(document_, &SessionDocument::timelineChanged, this, &MainWindow::onTimeline);
    connect(document_, &SessionDocument::progress, this, [this](const QString& what, quint64 done, quint64 total) {
        const bool on = !what.isEmpty();
        progressText_->setVisible(on);
        progressStop_->setVisible(on);
        progressBar_->setVisible(on && total > 0);
        progressText_->setText(total > 0
                                   ? tr("%1, %2 of %3").arg(what, countText(qint64(done)), countText(qint64(total)))
                                   : tr("%1, %2 chunks").arg(what, countText(qint64(done))));
        progressBar_->setRange(0, 1000);
        progressBar_->setValue(total > 0 ? int(1000.0 * double(done) / double(total)) : 0);
    });
    if (runs_ != nullptr) {
        connect(runs_, &RunController::started, this, [this] { updateAvailability(); });
        connect(runs_, &RunController::ended, this, [this] { updateAvailability(); });
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
    showStatus();
}

void MainWindow::onTimeline(qint64 run) {
    if (run == 0 || run != document_->runA()) {
        return;
    }
    const TimelineState& state = document_->timeline(run);
    if (state.timeline) {
        TimeRange extent{state.timeline->begin(), std::max(state.timeline->end(), state.timeline->begin() + 1)};
        if (!state.timeline->outOfMemory().empty()) {
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
    showStatus();
    updateAvailability();
}

void MainWindow::showStatus() {
    const sessions::RunInfo* run = document_->run(document_->runA());
    if (run == nullptr) {
        events_->clear();
        losses_->clear();
        saved_->clear();
        return;
    }
    const TimelineState& state = document_->timeline(run->id);
    events_->setText(state.timeline ? tr("%1 events").arg(countText(qint64(state.timeline->events()))) : QString());
    losses_->setText(run->lostRecords == 0 ? tr("No records lost")
                                           : tr("%1 records lost").arg(countText(qint64(run->lostRecords))));
    losses_->setColor(run->lostRecords == 0 ? TextColor::Text2 : TextColor::Warn);
    const bool live = run->status == sessions::RunStatus::Running;
    saved_->setText(live ? tr("Recording") : document_->readOnly() ? tr("Read only") : tr("Saved"));
    saved_->setColor(live ? TextColor::Accent : document_->readOnly() ? TextColor::Text2 : TextColor::Good);
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
    readout_->setText(next->readout());
    priced_->clear();
    searchHint_->setText(QStringLiteral("/"));
    if (!walkingBack_ && (visited_.empty() || visited_[visitedAt_] != id)) {
        visited_.resize(visited_.empty() ? 0 : visitedAt_ + 1);
        visited_.push_back(id);
        visitedAt_ = visited_.size() - 1;
    }
    next->activated();
    updateAvailability();
}

void MainWindow::saveLayout(const QString& view) {
    if (const auto keep = settings()) {
        keep->setValue(QStringLiteral("layout%1/%2").arg(narrow_ ? QStringLiteral("-narrow") : QString(), view),
                       saveState(kLayoutVersion));
    }
}

void MainWindow::restoreLayout(const QString& view) {
    const auto keep = settings();
    const QByteArray state =
        keep ? keep->value(QStringLiteral("layout%1/%2").arg(narrow_ ? QStringLiteral("-narrow") : QString(), view))
                   .toByteArray()
             : QByteArray();
    if (state.isEmpty() || !restoreState(state, kLayoutVersion)) {
        defaultLayout();
    }
    if (!inspectorPage_.contains(view) || !currentView()->wantsInspector()) {
        inspectorDock_->hide();
    }
}

void MainWindow::onAction(const QString& id) {
    if (View* now = currentView(); now != nullptr && now->perform(id)) {
        updateAvailability();
        return;
    }
    if (!windowAction(id)) {
        // A command of another view: the memory view answers the questions about memory.
        if (id.startsWith(QLatin1String("go.peak")) || id == QLatin1String("go.oom")) {
            openView(QStringLiteral("memory"));
            currentView()->perform(id);
        }
    }
    updateAvailability();
}

bool MainWindow::windowAction(const QString& id) {
    if (id.startsWith(QLatin1String("go.")) && viewById_.contains(id.mid(3))) {
        openView(id.mid(3));
        return true;
    }
    const std::map<QString, std::function<void()>> table = {
        {"file.open", [this] { openDialog(); }},
        {"file.new-session", [this] { newSessionDialog(); }},
        {"file.export-image", [this] { exportImage(); }},
        {"file.close", [this] { document_->close(); }},
        {"file.quit", [this] { close(); }},
        {"edit.find",
         [this] {
             search_->setFocus(Qt::ShortcutFocusReason);
             search_->selectAll();
         }},
        {"edit.find-next", [this] { searchHint_->setText(currentView()->find(search_->text(), 1)); }},
        {"edit.find-previous", [this] { searchHint_->setText(currentView()->find(search_->text(), -1)); }},
        {"edit.rename", [this] { renameRun(); }},
        {"run.start", [this] { openView(QStringLiteral("run")); }},
        {"run.again", [this] { runAgain(); }},
        {"run.stop",
         [this] {
             if (runs_ != nullptr)
                 runs_->stop();
         }},
        {"zoom.fit", [this] { time_->fitSelection(); }},
        {"zoom.all", [this] { time_->fitAll(); }},
        {"zoom.back", [this] { time_->back(); }},
        {"zoom.follow", [this] { time_->fitAll(); }},
        {"zoom.in",
         [this] { time_->zoom(0.7, time_->cursor().value_or(time_->range().begin + time_->range().length() / 2)); }},
        {"zoom.out",
         [this] {
             time_->zoom(1 / 0.7, time_->cursor().value_or(time_->range().begin + time_->range().length() / 2));
         }},
        {"pan.left", [this] { time_->pan(-0.15); }},
        {"pan.right", [this] { time_->pan(0.15); }},
        {"select.clear",
         [this] {
             if (progressStop_->isVisible()) {
                 document_->stopReading();
             }
             time_->setMeasured({});
             time_->select({});
         }},
        {"measure.filter",
         [this] {
             if (const auto range = time_->measured(); range && range->length() > 0) {
                 time_->pushFilter(
                     {*range, tr("%1 from %2").arg(durationText(range->length()), instantText(range->begin))});
             }
         }},
        {"measure.clear-filter",
         [this] {
             if (!time_->filters().empty())
                 time_->removeFilter(time_->filters().size() - 1);
         }},
        {"compare.baseline",
         [this] { document_->setRunB(document_->runB() == document_->runA() ? 0 : document_->runA()); }},
        {"compare.swap", [this] { document_->swapRuns(); }},
        {"panel.inspector",
         [this] {
             inspectorDock_->setVisible(!inspectorDock_->isVisible() && inspectorPage_.contains(currentView()->id()));
         }},
        {"panel.drawer", [this] { drawerDock_->setVisible(!drawerDock_->isVisible()); }},
        {"panel.runs", [this] { runsDock_->setVisible(!runsDock_->isVisible()); }},
        {"panel.next", [this] { moveFocus(1); }},
        {"panel.previous", [this] { moveFocus(-1); }},
        {"panel.reset",
         [this] {
             if (const auto keep = settings()) {
                 keep->remove(QStringLiteral("layout"));
                 keep->remove(QStringLiteral("layout-narrow"));
             }
             defaultLayout();
         }},
        {"theme.system", [this] { Theme::instance().setMode(Theme::Mode::System); }},
        {"theme.light", [this] { Theme::instance().setMode(Theme::Mode::Light); }},
        {"theme.dark", [this] { Theme::instance().setMode(Theme::Mode::Dark); }},
        {"tools.palette", [this] { palette_->openOver(); }},
        {"help.shortcuts", [this] { shortcuts_->openOver(); }},
        {"help.about", [this] { showAbout(); }},
        {"go.back",
         [this] {
             if (visitedAt_ > 0) {
                 walkingBack_ = true;
                 openView(visited_[--visitedAt_]);
                 walkingBack_ = false;
             }
         }},
        {"go.forward",
         [this] {
             if (visitedAt_ + 1 < visited_.size()) {
                 walkingBack_ = true;
                 openView(visited_[++visitedAt_]);
                 walkingBack_ = false;
             }
         }},
    };
    const auto found = table.find(id);
    if (found == table.end()) {
        return false;
    }
    found->second();
    if (id.startsWith(QLatin1String("theme."))) {
        if (const auto keep = settings()) {
            keep->setValue(QStringLiteral("theme"), static_cast<int>(Theme::instance().mode()));
        }
    }
    return true;
}

void MainWindow::openDialog() {
    const QString path = QFileDialog::getOpenFileName(this, tr("Open session"), QFileInfo(document_->path()).path(),
                                                      tr("Vitrine sessions (*.vitrine);;All files (*)"));
    if (!path.isEmpty()) {
        openFile(path);
    }
}

void MainWindow::newSessionDialog() {
    QString path = QFileDialog::getSaveFileName(this, tr("New session"), QFileInfo(document_->path()).path(),
                                                tr("Vitrine sessions (*.vitrine)"));
    if (path.isEmpty()) {
        return;
    }
    if (!path.endsWith(QLatin1String(".vitrine"))) {
        path += QLatin1String(".vitrine");
    }
    try {
        sessions::SessionFile::open(path.toStdString(), sessions::OpenMode::CreateOrOpen);
    } catch (const std::exception& error) {
        currentView()->showError(QString::fromUtf8(error.what()));
        return;
    }
    openFile(path);
}

void MainWindow::exportImage() {
    const QString path = QFileDialog::getSaveFileName(
        this, tr("Export view as image"), currentView()->id() + QStringLiteral(".png"), tr("PNG images (*.png)"));
    if (!path.isEmpty() && !currentView()->picture(currentView()->size(), 2.0).save(path)) {
        currentView()->showError(tr("%1: the image was not written; choose another folder").arg(path));
    }
}

void MainWindow::runAgain() {
    const sessions::RunInfo* run = document_->run(document_->runA());
    if (run == nullptr || runs_ == nullptr || runs_->running()) {
        return;
    }
    const nlohmann::json spec = nlohmann::json::parse(run->specJson, nullptr, false);
    if (!spec.is_object()) {
        currentView()->showError(tr("Run %1 has no experiment that can be started again.").arg(run->id));
        return;
    }
    runs_->start(spec, document_->path());
}

void MainWindow::renameRun() {
    const sessions::RunInfo* run = document_->run(document_->runA());
    if (run == nullptr || document_->readOnly()) {
        return;
    }
    bool ok = false;
    const QString name = QInputDialog::getText(this, tr("Rename run"), tr("Name"), QLineEdit::Normal,
                                               QString::fromStdString(run->name), &ok);
    if (ok) {
        document_->edit(
            [id = run->id, text = name.toStdString()](sessions::SessionFile& file) { file.renameRun(id, text); });
    }
}

void MainWindow::showAbout() {
    QMessageBox::about(this, tr("About Vitrine"),
                       tr("Vitrine %1, a workbench around an embedded LLM engine and a profiler.\nGNU GPL version 3.")
                           .arg(QApplication::applicationVersion()));
}

void MainWindow::updateAvailability() {
    const sessions::RunInfo* run = document_->run(document_->runA());
    const bool canStart = runs_ != nullptr && !runs_->running();
    std::set<QString> decided;
    const auto set = [this, &decided](const char* id, bool on, const QString& reason) {
        decided.insert(QString::fromLatin1(id));
        ActionList::setAvailable(actions_->action(QString::fromLatin1(id)), on, reason);
    };
    const QString noRun = tr("No run is open");
    set("run.again", canStart && run != nullptr, run == nullptr ? noRun : tr("A run is in progress"));
    set("run.stop", runs_ != nullptr && runs_->running(), tr("Nothing is running"));
    set("edit.rename", run != nullptr && !document_->readOnly(), run == nullptr ? noRun : tr("The file is read only"));
    set("compare.baseline", run != nullptr, noRun);
    set("compare.swap", document_->runB() != 0, tr("No baseline is set"));
    set("file.close", document_->isOpen(), tr("No session is open"));
    const bool measured = time_->measured().has_value();
    set("measure.filter", measured, tr("Drag over a plot to measure a range"));
    set("measure.clear-filter", !time_->filters().empty(), tr("There is no filter"));
    const bool oom =
        run != nullptr &&
        (run->status == sessions::RunStatus::OutOfMemory ||
         (document_->timeline(run->id).timeline && !document_->timeline(run->id).timeline->outOfMemory().empty()));
    set("go.oom", oom, tr("This run did not run out of memory"));
    whyOom_->setVisible(oom);
    runAgain_->setEnabled(actions_->action(QStringLiteral("run.again"))->isEnabled());
    stop_->setEnabled(actions_->action(QStringLiteral("run.stop"))->isEnabled());
    if (const View* now = currentView()) {
        for (QAction* action : actions_->all()) {
            const QString reason = now->whyNot(ActionList::idOf(action));
            if (!reason.isEmpty() || !decided.contains(ActionList::idOf(action))) {
                ActionList::setAvailable(action, reason.isEmpty(), reason);
            }
        }
    }
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

void MainWindow::updateForSize() {
    const bool narrow = width() < kNarrowWidth;
    rail_->setNarrow(narrow);
    device_->setNarrow(narrow);
    runAgain_->setText(narrow ? QString() : tr("Run again"));
    runAgain_->setToolTip(tr("Run again"));
    runAgain_->setAccessibleName(tr("Run again"));
    stop_->setText(narrow ? QString() : tr("Stop"));
    stop_->setToolTip(tr("Stop"));
    stop_->setAccessibleName(tr("Stop"));
    const bool tiny = width() < kTinyWidth;
    search_->setFixedWidth(tiny && !search_->hasFocus() && search_->text().isEmpty() ? 30 : 224);
    searchHint_->setVisible(search_->width() > 100);
    if (narrow != narrow_) {
        narrow_ = narrow;
        defaultLayout();
    }
}

void MainWindow::moveFocus(int direction) {
    QList<QWidget*> stops = {pickerA_, rail_->buttonOf(actions_->action(QStringLiteral("go.") + currentView()->id()))};
    stops << currentView()->header()->findChildren<QAbstractButton*>().value(0) << currentView()->focusStops();
    if (inspectorDock_->isVisible()) {
        stops << inspectorStack_->currentWidget();
    }
    if (drawerDock_->isVisible()) {
        stops << drawer_;
    }
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
    if (watched == search_ && event->type() == QEvent::KeyPress) {
        const auto* key = static_cast<QKeyEvent*>(event);
        if (key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter) {
            const int direction = key->modifiers() & Qt::ShiftModifier ? -1 : 1;
            searchHint_->setText(currentView()->find(search_->text(), direction));
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
        searchHint_->setText(search_->text().isEmpty() ? QStringLiteral("/") : hint);
    }
    return QMainWindow::eventFilter(watched, event);
}

} // namespace vitrine::ui
