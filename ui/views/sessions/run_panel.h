// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Everything about one run, for the inspector: state, tags and note to edit, metrics, experiment, environment.

#include <QWidget>

#include "ui/models/common/flat_tree.h"
#include "ui/models/session/session_document.h"
#include "ui/widgets/base/controls.h"

class QLineEdit;
class QPlainTextEdit;
class QTreeView;

namespace vitrine::ui {

class RunPanel final : public QWidget {
    Q_OBJECT

public:
    explicit RunPanel(QWidget* parent = nullptr);

    DockHeader* header() const { return header_; }
    /// Null: nothing is chosen; `chosen` says how many are.
    void setRun(const sessions::RunInfo* run, int chosen);
    QLineEdit* tags() const { return tags_; }
    QPlainTextEdit* note() const { return note_; }
    QTreeView* tree() const { return tree_; }

signals:
    void tagsEdited(qint64 run, const QStringList& tags);
    void noteEdited(qint64 run, const QString& note);

protected:
    void paintEvent(QPaintEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void commitNote();

    sessions::RunId run_ = 0;
    DockHeader* header_;
    TextLabel *hint_, *state_, *error_, *when_;
    QWidget* body_;
    QLineEdit* tags_;
    QPlainTextEdit* note_;
    QString writtenNote_;
    QTreeView* tree_;
    FlatTreeModel* model_;
};

} // namespace vitrine::ui
