// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The runs of the open session: find, compare, open, rename, tag, note, repeat, export and delete them.

#include <functional>

#include "ui/models/common/latest_job.h"
#include "ui/models/session/run_export.h"
#include "ui/models/session/run_table.h"
#include "ui/views/common/document_view.h"
#include "ui/views/common/session_edits.h"

class QLineEdit;
class QPushButton;
class QTableView;

namespace vitrine::ui {

class RunPanel;

class SessionsView final : public DocumentView {
    Q_OBJECT

public:
    explicit SessionsView(const ViewServices& context, QWidget* parent = nullptr);

    QWidget* inspector() override;
    QWidget* inspectorHeader() override;
    bool perform(const QString& action) override;
    QString find(const QString& text, int direction) override;
    QList<QWidget*> focusStops() const override;
    void activated() override;

    QTableView* table() const { return table_; }
    QLineEdit* filterField() const { return filter_; }
    RunPanel* panel() const { return panel_; }
    SessionEdits* edits() const { return edits_; }
    /// Asks before runs are deleted; tests answer themselves.
    void setConfirm(std::function<bool(const QString&)> confirm) { confirm_ = std::move(confirm); }
    void exportTo(ExportFormat format, const QString& path);

signals:
    void exported(const QStringList& files);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    // The list is filled at once, seen or not; events are of interest to an export alone.
    void refresh() override;
    std::vector<sessions::RunId> shownRuns() const override;
    void onSession() override { refresh(); }
    void onSelection() override;
    void onRuns() override { refresh(); }
    void onEvents(sessions::RunId run) override;

private:
    void buildHeader();
    void buildTable();
    void onFilter();
    void onChosen();
    void updateEmpty();
    std::vector<sessions::RunId> chosen() const; ///< in the order of the table
    sessions::RunId currentRun() const;
    void choose(sessions::RunId run);
    void openRun();
    void compare();
    void runAgain();
    void deleteRuns();
    void exportRun(ExportFormat format);
    void startExport();
    void importRuns();
    void contextMenu(const QPoint& position);
    void columnMenu(const QPoint& position);
    void setColumnShown(int column, bool on);
    void loadColumns();
    void saveColumns() const;

    RunTable* model_;
    RunTableProxy* proxy_;
    QTableView* table_;
    QLineEdit* filter_ = nullptr;
    QPushButton *compare_ = nullptr, *export_ = nullptr, *import_ = nullptr;
    RunPanel* panel_;
    SessionEdits* edits_;
    std::function<bool(const QString&)> confirm_;
    LatestJob<QStringList> exportJob_;
    struct Export {
        sessions::RunId run = 0;
        ExportFormat format = ExportFormat::Csv;
        QString path;
    };
    std::optional<Export> waiting_; ///< until its timeline is read
};

} // namespace vitrine::ui
