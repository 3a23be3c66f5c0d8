// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/sessions/run_panel.h"

#include <QApplication>
#include <QClipboard>
#include <QDateTime>
#include <QEvent>
#include <QFormLayout>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLineEdit>
#include <QPainter>
#include <QPlainTextEdit>
#include <QTreeView>
#include <QVBoxLayout>

#include "ui/models/common/format.h"
#include "ui/models/common/json_rows.h"
#include "ui/models/session/run_table.h"
#include "ui/widgets/base/delegates.h"
#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

TextColor stateColor(sessions::RunStatus status) {
    switch (status) {
    case sessions::RunStatus::Done:
        return TextColor::Good;
    case sessions::RunStatus::Failed:
    case sessions::RunStatus::OutOfMemory:
        return TextColor::Bad;
    case sessions::RunStatus::Running:
        return TextColor::Accent;
    default:
        return TextColor::Warn;
    }
}

} // namespace

RunPanel::RunPanel(QWidget* parent) : QWidget(parent) {
    header_ = new DockHeader(tr("Run"), this);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(1, 0, 0, 0);
    column->setSpacing(0);
    hint_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, this);
    hint_->setWordWrap(true);
    hint_->setContentsMargins(12, 10, 12, 10);
    column->addWidget(hint_);
    body_ = new QWidget(this);
    auto* form = new QFormLayout(body_);
    form->setContentsMargins(12, 8, 12, 8);
    form->setHorizontalSpacing(12);
    form->setVerticalSpacing(8);
    form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    const auto label = [this](const QString& text) {
        auto* made = new TextLabel(text, TypeRole::Table, TextColor::Text3, false, body_);
        made->setFixedWidth(48);
        return made;
    };
    state_ = new TextLabel({}, TypeRole::Table, TextColor::Text1, false, body_);
    form->addRow(label(tr("State")), state_);
    error_ = new TextLabel({}, TypeRole::Table, TextColor::Bad, false, body_);
    error_->setWordWrap(true);
    error_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    form->addRow(error_);
    when_ = new TextLabel({}, TypeRole::Table, TextColor::Text1, false, body_);
    when_->setElide(true);
    form->addRow(label(tr("When")), when_);
    tags_ = new QLineEdit(body_);
    tags_->setAccessibleName(tr("Tags, separated by commas"));
    tags_->setPlaceholderText(tr("none, separate with commas"));
    form->addRow(label(tr("Tags")), tags_);
    note_ = new QPlainTextEdit(body_);
    note_->setAccessibleName(tr("Note"));
    note_->setPlaceholderText(tr("What this run shows"));
    note_->setTabChangesFocus(true);
    note_->setFixedHeight(62);
    note_->installEventFilter(this);
    form->addRow(label(tr("Note")), note_);
    column->addWidget(body_);
    tree_ = new QTreeView(this);
    tree_->setAccessibleName(tr("Metrics, experiment and environment of the run"));
    setUpTable(tree_, true, true);
    tree_->setSortingEnabled(false);
    model_ = new FlatTreeModel(this);
    tree_->setModel(model_);
    // A run that goes on gets more fields: the groups stay open.
    connect(model_, &QAbstractItemModel::modelReset, tree_, [this] { tree_->expandToDepth(0); });
    tree_->installEventFilter(this);
    column->addWidget(tree_, 1);
    connect(tags_, &QLineEdit::editingFinished, this, [this] {
        if (run_ != 0) {
            emit tagsEdited(run_, splitTags(tags_->text()));
        }
    });
    setRun(nullptr, 0);
}

void RunPanel::setRun(const sessions::RunInfo* run, int chosen) {
    const bool other = run == nullptr || run->id != run_;
    if (other) {
        commitNote();
    }
    hint_->setVisible(run == nullptr);
    body_->setVisible(run != nullptr);
    tree_->setVisible(run != nullptr);
    if (run == nullptr) {
        run_ = 0;
        header_->setTitle(tr("Run"));
        hint_->setText(chosen > 1 ? tr("%1 runs are chosen. Compare shows what differs between two.").arg(chosen)
                                  : tr("Choose a run to see its settings, results and notes."));
        return;
    }
    run_ = run->id;
    header_->setTitle(tr("Run %1").arg(run->id));
    state_->setText(statusText(run->status));
    state_->setColor(stateColor(run->status));
    error_->setText(QString::fromStdString(run->error));
    error_->setVisible(!run->error.empty());
    error_->setColor(run->status == sessions::RunStatus::Cancelled ? TextColor::Text2 : TextColor::Bad);
    const QDateTime when = QDateTime::fromMSecsSinceEpoch(run->startedMs);
    const auto seconds = runSeconds(*run);
    QString text = when.toString(QStringLiteral("yyyy-MM-dd HH:mm:ss"));
    if (seconds) {
        text += tr(", took %1").arg(durationText(static_cast<base::TimeNs>(*seconds * 1e9)));
    }
    when_->setText(text);
    if (other || !tags_->hasFocus()) {
        tags_->setText(tagList(*run).join(QStringLiteral(", ")));
    }
    const QString note = QString::fromStdString(run->note);
    if (other || (note != writtenNote_ && !note_->hasFocus())) {
        note_->setPlainText(note);
    } else if (note != writtenNote_ && note_->toPlainText() == writtenNote_) {
        note_->setPlainText(note); // undone while the field has the focus
    }
    writtenNote_ = note;
    const bool fresh = other;
    model_->setTree(runDetailTree(*run));
    if (fresh) {
        tree_->expandToDepth(0); // what lies deeper is detail
        tree_->setColumnWidth(0, 196);
        tree_->scrollToTop();
    }
}

void RunPanel::commitNote() {
    if (run_ != 0 && note_->toPlainText() != writtenNote_) {
        writtenNote_ = note_->toPlainText();
        emit noteEdited(run_, writtenNote_);
    }
}

bool RunPanel::eventFilter(QObject* watched, QEvent* event) {
    if (watched == note_ && event->type() == QEvent::FocusOut) {
        commitNote();
    }
    if (watched == note_ && event->type() == QEvent::KeyPress) {
        const auto* key = static_cast<QKeyEvent*>(event);
        if (key->key() == Qt::Key_Return && key->modifiers() & Qt::ControlModifier) {
            commitNote();
            return true;
        }
    }
    if (watched == tree_ && event->type() == QEvent::KeyPress &&
        static_cast<QKeyEvent*>(event)->matches(QKeySequence::Copy)) {
        QApplication::clipboard()->setText(asTabSeparated(*model_, tree_->selectionModel()->selectedRows()));
        return true;
    }
    return QWidget::eventFilter(watched, event);
}

void RunPanel::paintEvent(QPaintEvent*) {
    QPainter(this).fillRect(rect(), themeTokens().panel);
}

} // namespace vitrine::ui
