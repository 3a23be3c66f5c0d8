// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// What the commands of the window do, and which of them can be done; the rest of the window stands in main_window.cpp.
#include <QApplication>
#include <QFileDialog>
#include <QMessageBox>
#include <set>

#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/views/common/session_edits.h"
#include "ui/views/common/tool_note.h"
#include "ui/views/shell/command_palette.h"
#include "ui/views/shell/main_window.h"
#include "ui/views/shell/session_commands.h"
#include "ui/views/shell/settings_file.h"
#include "ui/views/shell/shortcuts_panel.h"
#include "ui/views/shell/status_row.h"
#include "ui/views/shell/tool_row.h"
#include "ui/views/shell/window_docks.h"
#include "ui/widgets/timeline/time_strip.h"

namespace vitrine::ui {

namespace {

/// The view that does a command while another one is shown; empty: none.
QString ownerOf(const QString& command) {
    const std::pair<QLatin1String, QLatin1String> owners[] = {
        {QLatin1String("go.peak"), QLatin1String("memory")},   {QLatin1String("go.oom"), QLatin1String("memory")},
        {QLatin1String("kernels."), QLatin1String("kernels")}, {QLatin1String("batching."), QLatin1String("batching")},
        {QLatin1String("mask."), QLatin1String("mask")},
    };
    for (const auto& [prefix, view] : owners) {
        if (command.startsWith(prefix)) {
            return view;
        }
    }
    return {};
}

} // namespace

void MainWindow::onAction(const QString& id) {
    if (View* now = currentView(); now != nullptr && now->perform(id)) {
        updateAvailability();
        return;
    }
    if (!windowAction(id)) {
        if (const QString owner = ownerOf(id); !owner.isEmpty()) {
            openView(owner);
            currentView()->perform(id);
        }
    }
    updateAvailability();
}

bool MainWindow::windowAction(const QString& id) {
    if (id.startsWith(QLatin1String("go.")) && view(id.mid(3)) != nullptr) {
        openView(id.mid(3));
        return true;
    }
    if (id == QLatin1String("select.clear") && status_->reading()) {
        document_->stopReading();
    }
    if (sessions_->perform(id) || timeCommands_->perform(id)) {
        return true;
    }
    for (const Commands& table : {viewCommands(), runCommands(), panelCommands()}) {
        if (const auto found = table.find(id); found != table.end()) {
            found->second();
            return true;
        }
    }
    return false;
}

MainWindow::Commands MainWindow::viewCommands() {
    return {
        {"file.export-image", [this] { exportImage(); }},
        {"file.quit", [this] { close(); }},
        {"edit.find", [this] { tools_->search()->takeFocus(); }},
        {"edit.find-next", [this] { tools_->search()->findAgain(1); }},
        {"edit.find-previous", [this] { tools_->search()->findAgain(-1); }},
        {"edit.undo", [this] { context_.edits->stack()->undo(); }},
        {"edit.redo", [this] { context_.edits->stack()->redo(); }},
        {"run.start", [this] { openView(QStringLiteral("run")); }},
        {"run.queue", [this] { openView(QStringLiteral("queue")); }},
        {"go.back", [this] { stack_->back(); }},
        {"go.forward", [this] { stack_->forward(); }},
        {"tools.palette", [this] { palette_->openOver(); }},
        {"help.shortcuts", [this] { shortcuts_->openOver(); }},
        {"help.about", [this] { showAbout(); }},
    };
}

MainWindow::Commands MainWindow::runCommands() {
    return {
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
        {"compare.baseline",
         [this] { document_->setRunB(document_->runB() == document_->runA() ? 0 : document_->runA()); }},
        {"compare.swap", [this] { document_->swapRuns(); }},
    };
}

MainWindow::Commands MainWindow::panelCommands() {
    return {
        {"panel.inspector", [this] { docks_->toggleInspector(); }},
        {"panel.drawer", [this] { docks_->toggleDrawer(); }},
        {"panel.runs", [this] { docks_->toggleRuns(); }},
        {"panel.next", [this] { moveFocus(1); }},
        {"panel.previous", [this] { moveFocus(-1); }},
        {"panel.reset", [this] { docks_->forgetLayouts(); }},
        {"theme.system", [this] { setTheme(Theme::Mode::System); }},
        {"theme.light", [this] { setTheme(Theme::Mode::Light); }},
        {"theme.dark", [this] { setTheme(Theme::Mode::Dark); }},
    };
}

void MainWindow::setTheme(Theme::Mode mode) {
    Theme::instance().setMode(mode);
    if (const auto keep = keptSettings(settingsFile_)) {
        keep->setValue(QStringLiteral("theme"), static_cast<int>(mode));
    }
}

void MainWindow::exportImage() {
    const QString path = QFileDialog::getSaveFileName(
        this, tr("Export view as image"), currentView()->id() + QStringLiteral(".png"), tr("PNG images (*.png)"));
    if (!path.isEmpty() && !currentView()->picture(currentView()->size(), 2.0).save(path)) {
        currentView()->showError(tr("%1: the image was not written; choose another folder").arg(path));
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
    const auto* noting = dynamic_cast<const ToolNote*>(currentView());
    tools_->setNote(noting != nullptr ? noting->toolNote() : QString());
    const QString noRun = tr("No run is open");
    set("run.again", canStart && run != nullptr, run == nullptr ? noRun : tr("A run is in progress"));
    set("run.stop", runs_ != nullptr && runs_->running(), tr("Nothing is running"));
    set("run.release", runs_ != nullptr && runs_->keptBytes() > 0, tr("No weights are kept on the device"));
    set("edit.rename", run != nullptr && !document_->readOnly(), run == nullptr ? noRun : tr("The file is read only"));
    set("compare.baseline", run != nullptr, noRun);
    set("compare.swap", document_->runB() != 0, tr("No baseline is set"));
    set("file.close", document_->isOpen(), tr("No session is open"));
    set("file.save-copy", document_->isOpen(), tr("No session is open"));
    const bool ownUndo = currentView() != nullptr && currentView()->undoesItself();
    const QUndoStack& edits = *context_.edits->stack();
    const auto offer = [&](const char* id, const QString& word, const QString& edit, const QString& reason) {
        actions_->action(QString::fromLatin1(id))
            ->setText(ownUndo || edit.isEmpty() ? word : word + QLatin1Char(' ') + edit);
        if (!ownUndo) {
            set(id, !edit.isEmpty(), reason);
        }
    };
    offer("edit.undo", tr("Undo"), edits.undoText(), tr("Nothing was changed here"));
    offer("edit.redo", tr("Redo"), edits.redoText(), tr("Nothing was undone here"));
    const bool measured = time_->measured().has_value();
    set("measure.filter", measured, tr("Drag over a plot to measure a range"));
    set("measure.clear-filter", !time_->filters().empty(), tr("There is no filter"));
    // Only views on the axis of time have marks: elsewhere their keys belong to the view.
    const bool timed = currentView() != nullptr && currentView()->findChild<TimeStrip*>() != nullptr;
    const bool marked = timed && timeCommands_->marked().has_value();
    const QString nothing = timed ? tr("Click a plot or drag over it first") : tr("This view has no axis of time");
    set("mark.set", marked, nothing);
    set("mark.keep", marked && run != nullptr, nothing);
    set("mark.remove", marked, nothing);
    const bool oom = run != nullptr && (run->status == sessions::RunStatus::OutOfMemory ||
                                        (document_->timeline(run->id).timeline &&
                                         !document_->timeline(run->id).timeline->memory().outOfMemory().empty()));
    set("go.oom", oom, tr("This run did not run out of memory"));
    tools_->setAvailable(actions_->action(QStringLiteral("run.again"))->isEnabled(),
                         actions_->action(QStringLiteral("run.stop"))->isEnabled(), oom);
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
