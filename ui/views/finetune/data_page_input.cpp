// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Keys, search and dropped files of the Data page.

#include <QDragEnterEvent>
#include <QFileDialog>
#include <QKeyEvent>
#include <QLineEdit>
#include <QMimeData>
#include <QSaveFile>
#include <algorithm>

#include "ui/models/common/format.h"
#include "ui/models/run/experiment_form.h"
#include "ui/views/finetune/data_inspector.h"
#include "ui/views/finetune/data_page.h"
#include "ui/widgets/plots/token_grid.h"

namespace vitrine::ui {

void DataPage::dragEnterEvent(QDragEnterEvent* event) {
    const QList<QUrl> urls = event->mimeData()->urls();
    const QString file = urls.size() == 1 ? urls.front().toLocalFile() : QString();
    if (file.endsWith(QLatin1String(".jsonl")) || file.endsWith(QLatin1String(".json"))) {
        event->acceptProposedAction();
    }
}

void DataPage::dropEvent(QDropEvent* event) {
    takeFile(event->mimeData()->urls().front().toLocalFile());
    event->acceptProposedAction();
}

/// The next line, after that of the row shown, with a loss: cut, without an answer or left out.
void DataPage::nextLoss(int direction) {
    std::vector<std::int64_t> lines;
    for (const engine::CutRow& row : set_->summary.cut) {
        lines.push_back(row.line);
    }
    for (const engine::LeftOutRow& row : set_->summary.leftOut) {
        lines.push_back(row.line);
    }
    std::sort(lines.begin(), lines.end());
    if (lines.empty()) {
        return;
    }
    const auto after = std::upper_bound(lines.begin(), lines.end(), lossLine_);
    const auto before = std::lower_bound(lines.begin(), lines.end(), lossLine_);
    lossLine_ = direction > 0 ? (after == lines.end() ? lines.front() : *after)
                              : (before == lines.begin() ? lines.back() : *(before - 1));
    showLine(lossLine_);
}

void DataPage::listRows(const RowFilter& filter) {
    filter_ = filter;
    inspector_->setFilter(filter);
    emit tableWanted(false); // a table that is open already is filled again
    emit tableWanted(true);
    emit readoutChanged(
        tr("The table lists rows: %1").arg(filter.any() ? filterText(filter) : tr("all that are cut or left out")));
}

void DataPage::exportSummary() {
    if (!set_) {
        return;
    }
    const QString path =
        QFileDialog::getSaveFileName(this, tr("Export the summary"), QStringLiteral("data.csv"), tr("CSV (*.csv)"));
    if (path.isEmpty()) {
        return;
    }
    QSaveFile file(path);
    const QByteArray text = QByteArray::fromStdString(engine::dataSummaryCsv(set_->summary));
    if (!file.open(QIODevice::WriteOnly) || file.write(text) != text.size() || !file.commit()) {
        emit failed(tr("%1: %2, choose another place").arg(path, file.errorString()));
        return;
    }
    emit readoutChanged(tr("The summary is in %1").arg(path));
}

QString DataPage::find(const QString& text, int direction) {
    if (!set_ || text.isEmpty()) {
        return {};
    }
    const bool byId = text.startsWith(QLatin1String("id:"));
    const int id = byId ? text.mid(3).toInt() : -1;
    const std::string bytes = text.toStdString();
    const std::int64_t found = grid_->findFrom(direction < 0 ? -1 : 1, [&](std::int64_t at) {
        const auto i = static_cast<std::size_t>(at);
        return byId ? row_.ids[i] == id : row_.cells[i].bytes.find(bytes) != std::string::npos;
    });
    if (found < 0) {
        return tr("not in this row");
    }
    grid_->setCurrentToken(found, true);
    hoverToken(found, true);
    return tr("token %1").arg(countText(found));
}

void DataPage::keyPressEvent(QKeyEvent* event) {
    const int key = event->key();
    const bool plain = event->modifiers() == Qt::NoModifier, shift = event->modifiers() == Qt::ShiftModifier;
    if (!set_ || !(plain || shift)) {
        return QWidget::keyPressEvent(event);
    }
    if (key == Qt::Key_Period || key == Qt::Key_PageDown) {
        showSequence(sequence_.index + 1);
    } else if (key == Qt::Key_Comma || key == Qt::Key_PageUp) {
        showSequence(sequence_.index - 1);
    } else if (key == Qt::Key_P) {
        nextLoss(shift ? -1 : 1);
    } else if (key == Qt::Key_G && plain) {
        number_->setFocus();
        number_->selectAll();
    } else if (key == Qt::Key_M && plain && kinds_->isVisible()) {
        kinds_->setCurrent(1 - kinds_->current());
        showMask();
    } else {
        QWidget::keyPressEvent(event);
    }
}

} // namespace vitrine::ui
