// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Runs out of the session into files for other tools, and runs of another session into this one.
#include <QFileDialog>
#include <QFileInfo>

#include "ui/views/sessions/sessions_view.h"

namespace vitrine::ui {

void SessionsView::exportRun(ExportFormat format) {
    const std::vector<sessions::RunId> runs = chosen();
    const sessions::RunInfo* run = runs.size() == 1 ? context().document->run(runs.front()) : nullptr;
    if (run == nullptr) {
        return;
    }
    const bool csv = format == ExportFormat::Csv;
    const QString folder = QFileInfo(context().document->path()).path();
    const QString path = QFileDialog::getSaveFileName(this, csv ? tr("Export tables") : tr("Export trace"),
                                                      folder + QStringLiteral("/run%1").arg(run->id) +
                                                          (csv ? QStringLiteral(".csv") : QStringLiteral(".json")),
                                                      csv ? tr("CSV tables (*.csv)") : tr("Chrome trace (*.json)"));
    if (!path.isEmpty()) {
        exportTo(format, path);
    }
}

void SessionsView::exportTo(ExportFormat format, const QString& path) {
    if (const std::vector<sessions::RunId> runs = chosen(); runs.size() == 1) {
        waiting_ = Export{runs.front(), format, path};
        startExport();
    }
}

void SessionsView::startExport() {
    const TimelineState& state = context().document->timeline(waiting_->run);
    if (!state.complete || !state.timeline) {
        setReadout(tr("Reading the events of run %1 for the export").arg(waiting_->run));
        if (!state.error.isEmpty()) {
            showError(state.error);
            waiting_.reset();
        }
        return;
    }
    const sessions::RunInfo* run = context().document->run(waiting_->run);
    const Export job = *waiting_;
    waiting_.reset();
    if (run == nullptr) {
        return;
    }
    setReadout(tr("Writing %1").arg(job.path));
    exportJob_.start(
        [job, info = *run, timeline = state.timeline]() -> QStringList {
            try {
                return ui::exportRun(*timeline, info, job.format, job.path);
            } catch (const std::exception& error) {
                return {QString(), QString::fromUtf8(error.what())}; // no file has an empty name
            }
        },
        [this](const QStringList& files) {
            if (files.size() == 2 && files.first().isEmpty()) {
                setReadout({});
                showError(files.last());
                return;
            }
            setReadout(files.size() == 1 ? tr("Wrote %1").arg(files.first())
                                         : tr("Wrote %1 and %2 more").arg(files.first()).arg(files.size() - 1));
            emit exported(files);
        });
}

void SessionsView::importRuns() {
    const QString path =
        QFileDialog::getOpenFileName(this, tr("Import runs"), QFileInfo(context().document->path()).path(),
                                     tr("Vitrine sessions (*.vitrine);;All files (*)"));
    if (path.isEmpty()) {
        return;
    }
    context().document->edit([path](sessions::SessionFile& file) {
        const auto other = sessions::SessionFile::open(path.toStdString(), sessions::OpenMode::ReadOnly);
        for (const sessions::RunInfo& run : other->runs()) {
            other->copyRunTo(run.id, file);
        }
    });
}

} // namespace vitrine::ui
