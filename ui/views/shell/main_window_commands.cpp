// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// What the commands of the window do; the rest of the window stands in main_window.cpp.
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
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "ui/models/common/format.h"
#include "ui/models/session/run_summary.h"
#include "ui/views/shell/command_palette.h"
#include "ui/views/shell/drawer.h"
#include "ui/views/shell/main_window.h"
#include "ui/views/shell/rail.h"
#include "ui/views/shell/shortcuts_panel.h"
#include "ui/views/shell/status_row.h"
#include "ui/views/shell/view_list.h"
#include "ui/widgets/base/icons.h"
#include "ui/widgets/base/theme.h"
#include "ui/widgets/timeline/time_strip.h"

namespace vitrine::ui {

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
        } else if (id.startsWith(QLatin1String("kernels."))) {
            openView(QStringLiteral("kernels"));
            currentView()->perform(id);
        } else if (id.startsWith(QLatin1String("batching."))) {
            openView(QStringLiteral("batching"));
            currentView()->perform(id);
        } else if (id.startsWith(QLatin1String("mask."))) {
            openView(QStringLiteral("mask"));
            currentView()->perform(id);
        }
    }
    updateAvailability();
}

MainWindow::Commands MainWindow::fileCommands() {
    return {
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
        {"edit.find-next", [this] { setSearchHint(currentView()->find(search_->text(), 1)); }},
        {"edit.find-previous", [this] { setSearchHint(currentView()->find(search_->text(), -1)); }},
        {"edit.rename", [this] { renameRun(); }},
        {"run.start", [this] { openView(QStringLiteral("run")); }},
        {"run.again", [this] { runAgain(); }},
        {"run.stop",
         [this] {
             if (runs_ != nullptr) {
                 runs_->stop();
             }
         }},
        {"run.release",
         [this] {
             if (runs_ != nullptr) {
                 runs_->releaseMemory();
             }
         }},
    };
}

std::optional<TimeRange> MainWindow::markedRange() const {
    if (time_->mark() || time_->measured()) {
        return time_->mark() ? time_->mark() : time_->measured();
    }
    return time_->cursor() ? std::optional(TimeRange{*time_->cursor(), *time_->cursor()}) : std::nullopt;
}

MainWindow::Commands MainWindow::timeCommands() {
    return {
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
             if (status_->reading()) {
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
        {"mark.set",
         [this] {
             const auto cursor = time_->cursor();
             auto range = time_->measured();
             if (!range && cursor) {
                 range = TimeRange{*cursor, *cursor};
             }
             time_->setMark(range == time_->mark() ? std::nullopt : range); // again takes it away
         }},
        {"mark.keep",
         [this] {
             if (const auto range = markedRange()) {
                 time_->setMark({});
                 drawerDock_->show();
                 drawer_->addNote(*range);
             }
         }},
        {"mark.remove",
         [this] {
             if (time_->mark()) {
                 time_->setMark({});
             } else if (time_->cursor()) {
                 drawer_->removeNoteAt(*time_->cursor(), time_->range().length() / 100);
             }
         }},
        {"measure.clear-filter",
         [this] {
             if (!time_->filters().empty()) {
                 time_->removeFilter(time_->filters().size() - 1);
             }
         }},
        {"compare.baseline",
         [this] { document_->setRunB(document_->runB() == document_->runA() ? 0 : document_->runA()); }},
        {"compare.swap", [this] { document_->swapRuns(); }},
    };
}

MainWindow::Commands MainWindow::panelCommands() {
    return {
        {"panel.inspector",
         [this] {
             if (inspectorDock_->isVisible() && inspectorFolded_) {
                 foldInspector(false);
             } else {
                 inspectorDock_->setVisible(!inspectorDock_->isVisible() &&
                                            inspectorPage_.contains(currentView()->id()));
             }
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
}

bool MainWindow::windowAction(const QString& id) {
    if (id.startsWith(QLatin1String("go.")) && viewById_.contains(id.mid(3))) {
        openView(id.mid(3));
        return true;
    }
    bool done = false;
    for (const Commands& table : {fileCommands(), timeCommands(), panelCommands()}) {
        if (const auto found = table.find(id); found != table.end()) {
            found->second();
            done = true;
        }
    }
    if (done && id.startsWith(QLatin1String("theme."))) {
        if (const auto keep = settings()) {
            keep->setValue(QStringLiteral("theme"), static_cast<int>(Theme::instance().mode()));
        }
    }
    return done;
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
    set("run.release", runs_ != nullptr && runs_->keptBytes() > 0, tr("No weights are kept on the device"));
    set("edit.rename", run != nullptr && !document_->readOnly(), run == nullptr ? noRun : tr("The file is read only"));
    set("compare.baseline", run != nullptr, noRun);
    set("compare.swap", document_->runB() != 0, tr("No baseline is set"));
    set("file.close", document_->isOpen(), tr("No session is open"));
    const bool measured = time_->measured().has_value();
    set("measure.filter", measured, tr("Drag over a plot to measure a range"));
    set("measure.clear-filter", !time_->filters().empty(), tr("There is no filter"));
    // Only views on the axis of time have marks: elsewhere their keys belong to the view.
    const bool timed = currentView() != nullptr && currentView()->findChild<TimeStrip*>() != nullptr;
    const bool marked = timed && markedRange().has_value();
    const QString nothing = timed ? tr("Click a plot or drag over it first") : tr("This view has no axis of time");
    set("mark.set", marked, nothing);
    set("mark.keep", marked && !document_->readOnly() && run != nullptr,
        document_->readOnly() ? tr("The file is read only") : nothing);
    set("mark.remove", marked, nothing);
    const bool oom = run != nullptr && (run->status == sessions::RunStatus::OutOfMemory ||
                                        (document_->timeline(run->id).timeline &&
                                         !document_->timeline(run->id).timeline->memory().outOfMemory().empty()));
    set("go.oom", oom, tr("This run did not run out of memory"));
    // A button that goes hands its focus to the view: Qt would give it to the next field, where single keys are typed.
    const bool again = actions_->action(QStringLiteral("run.again"))->isEnabled();
    const bool stop = actions_->action(QStringLiteral("run.stop"))->isEnabled();
    if (currentView() != nullptr &&
        ((runAgain_->hasFocus() && !again) || (stop_->hasFocus() && !stop) || (whyOom_->hasFocus() && !oom))) {
        currentView()->setFocus();
    }
    whyOom_->setVisible(oom);
    runAgain_->setEnabled(again);
    stop_->setEnabled(stop);
    if (const View* now = currentView()) {
        for (QAction* action : actions_->all()) {
            const QString reason = now->whyNot(ActionList::idOf(action));
            if (!reason.isEmpty() || !decided.contains(ActionList::idOf(action))) {
                ActionList::setAvailable(action, reason.isEmpty(), reason);
            }
        }
    }
}

} // namespace vitrine::ui
