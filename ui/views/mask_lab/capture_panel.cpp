// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/mask_lab/capture_panel.h"

#include <QFileInfo>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QRegularExpression>
#include <QTreeView>
#include <QVBoxLayout>
#include <algorithm>
#include <set>

#include "ui/models/common/format.h"
#include "ui/models/mask_lab/mask_numbers.h"
#include "ui/widgets/base/delegates.h"
#include "ui/widgets/base/style.h"

namespace vitrine::ui {

namespace {

constexpr int kMostRows = 9; ///< that are seen at once

QString fromText(const MaskCapture& capture) {
    switch (capture.from) {
    case MaskCapture::From::File:
        return QObject::tr("from the file, %1").arg(capture.type);
    case MaskCapture::From::Text:
        return QObject::tr("made by the text, %1").arg(capture.type);
    case MaskCapture::From::Editor:
        break;
    }
    const auto documents = static_cast<qint64>(capture.lengths.size());
    return documents == 0   ? capture.type
           : documents == 1 ? QObject::tr("1 document, %1").arg(capture.type)
                            : QObject::tr("%1 documents, %2").arg(countText(documents), capture.type);
}

} // namespace

CaptureEditor::CaptureEditor(const QString& name, QWidget* parent) : QWidget(parent) {
    capture_.name = name;
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 8);
    column->setSpacing(0);
    auto* head = new QHBoxLayout;
    head->setContentsMargins(12, 4, 12, 2);
    auto* label = new TextLabel(name, TypeRole::Table, TextColor::Text2, false, this);
    const auto mono = [label] { label->setFont(Theme::instance().monoFont(TypeRole::Table)); };
    mono();
    connect(&Theme::instance(), &Theme::changed, label, mono); // after the label's own
    facts_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, this);
    facts_->setElide(true);
    facts_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    head->addWidget(label);
    head->addWidget(facts_, 1);
    column->addLayout(head);
    warning_ = new TextLabel({}, TypeRole::Table, TextColor::Warn, false, this);
    warning_->setWordWrap(true);
    warning_->setContentsMargins(12, 0, 12, 4);
    column->addWidget(warning_);
    table_ = new QTreeView(this);
    setUpTable(table_, false, true);
    model_ = new FlatTreeModel(this);
    table_->setModel(model_);
    table_->setSortingEnabled(false);
    model_->sort(0, Qt::AscendingOrder);
    table_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    table_->header()->setSortIndicatorShown(false);
    table_->header()->setMinimumSectionSize(40);
    table_->header()->setStretchLastSection(false);
    table_->viewport()->installEventFilter(this);
    table_->setAccessibleName(tr("Documents of %1").arg(name));
    column->addWidget(table_);
    lengths_ = new QPlainTextEdit(this);
    lengths_->setAccessibleName(tr("Lengths of the documents of %1, with commas between them").arg(name));
    lengths_->setFixedHeight(88);
    lengths_->setFont(Theme::instance().monoFont(TypeRole::Table));
    values_ = new QLineEdit(this);
    values_->setAccessibleName(tr("Values of %1, with commas between them").arg(name));
    values_->setFont(Theme::instance().monoFont(TypeRole::Table));
    setControlHeight(values_, 22);
    auto* fields = new QVBoxLayout;
    fields->setContentsMargins(12, 0, 12, 0);
    fields->addWidget(lengths_);
    fields->addWidget(values_);
    column->addLayout(fields);
    buttons_ = new QWidget(this);
    auto* row = new QHBoxLayout(buttons_);
    row->setContentsMargins(12, 8, 12, 0);
    row->setSpacing(8);
    edit_ = new QPushButton(buttons_);
    cancel_ = new QPushButton(tr("Cancel"), buttons_);
    fromRun_ = new QPushButton(tr("From run A"), buttons_);
    fromRun_->setToolTip(tr("Lengths of the sequences of run A as documents"));
    for (QPushButton* button : {edit_, cancel_, fromRun_}) {
        setControlHeight(button, 22);
        row->addWidget(button);
    }
    row->addStretch(1);
    column->addWidget(buttons_);
    connect(edit_, &QPushButton::clicked, this, [this] { editing_ ? takeLengths() : editLengths(true); });
    connect(cancel_, &QPushButton::clicked, this, [this] { editLengths(false); });
    connect(fromRun_, &QPushButton::clicked, this, [this] { emit fromRunWanted(capture_.name); });
    connect(values_, &QLineEdit::editingFinished, this, [this] {
        const QString text = values_->text().trimmed();
        if (text != capture_.values && !text.isEmpty()) {
            emit edited(capture_.name, capture_.name + QLatin1Char('=') + text);
        }
    });
}

void CaptureEditor::setCapture(const MaskCapture& capture, std::int64_t block) {
    capture_ = capture;
    block_ = block;
    facts_->setText(fromText(capture));
    facts_->setToolTip(fromText(capture));
    warning_->setText(tr("The last document takes what lies after its end."));
    warning_->setVisible(capture.tooShort);
    if (capture.from == MaskCapture::From::Editor && capture.lengths.empty() && !values_->hasFocus()) {
        values_->setText(capture.values);
        values_->setCursorPosition(0);
    }
    editLengths(editing_ && !capture.lengths.empty());
    updateTable();
}

void CaptureEditor::editLengths(bool on) {
    const bool documents = !capture_.lengths.empty();
    if (on && !editing_) {
        QStringList words;
        for (const std::int64_t length : capture_.lengths) {
            words << QString::number(length);
        }
        lengths_->setPlainText(words.join(QStringLiteral(", ")));
        lengths_->setFocus();
    }
    editing_ = on;
    table_->setVisible(documents && !on);
    lengths_->setVisible(documents && on);
    values_->setVisible(!documents && capture_.from == MaskCapture::From::Editor);
    buttons_->setVisible(documents);
    cancel_->setVisible(on);
    fromRun_->setVisible(!on);
    edit_->setText(on ? tr("Use lengths") : tr("Edit lengths"));
}

void CaptureEditor::takeLengths() {
    static const QRegularExpression separators(QStringLiteral("[\\s,;]+"));
    std::vector<std::int64_t> lengths;
    for (const QString& word : lengths_->toPlainText().split(separators, Qt::SkipEmptyParts)) {
        const std::int64_t length = parseLength(word);
        if (length <= 0) {
            warning_->setText(tr("\"%1\" is no length of a document; write positive whole numbers").arg(word.left(24)));
            warning_->show();
            return;
        }
        lengths.push_back(length);
    }
    if (lengths.empty()) {
        warning_->setText(tr("Write the length of at least one document"));
        warning_->show();
        return;
    }
    editLengths(false);
    emit edited(capture_.name, textOf(engine::documentsText(capture_.name.toStdString(), lengths)));
}

void CaptureEditor::updateTable() {
    if (capture_.lengths == shownLengths_ && block_ == shownBlock_) {
        return;
    }
    shownLengths_ = capture_.lengths;
    shownBlock_ = block_;
    auto tree = std::make_shared<FlatTree>();
    tree->columns = {{tr("Document"), false}, {tr("Length"), true}, {tr("First token"), true}, {tr("Blocks"), true}};
    const auto number = [](std::int64_t value, bool muted) {
        FlatCell cell(countText(value), QVariant(static_cast<qlonglong>(value)), QString::number(value));
        cell.muted = muted;
        return cell;
    };
    quint64 key = 0;
    for (const MaskDocument& document : maskDocuments(capture_.lengths, block_)) {
        FlatNode node;
        node.key = ++key;
        node.cells = {number(static_cast<std::int64_t>(key) - 1, false), number(document.length, false),
                      number(document.first, true), number(document.blocks, true)};
        tree->nodes.push_back(std::move(node));
    }
    const int rows = std::min(kMostRows, static_cast<int>(tree->nodes.size()));
    model_->setTree(std::move(tree));
    table_->setFixedHeight(24 * (rows + 1) + 2);
}

void CaptureEditor::setPointed(std::int64_t q, std::int64_t kv) {
    QItemSelection rows;
    for (const std::int64_t position : {q, kv}) {
        const int document = position < 0 ? -1 : documentAt(capture_.lengths, position);
        const QModelIndex index = document < 0 ? QModelIndex() : model_->indexOfKey(static_cast<quint64>(document) + 1);
        if (index.isValid()) {
            rows.select(index, index.siblingAtColumn(model_->columnCount() - 1));
        }
    }
    if (rows.isEmpty()) {
        table_->clearSelection();
    } else if (rows != table_->selectionModel()->selection()) {
        table_->selectionModel()->select(rows, QItemSelectionModel::ClearAndSelect);
        table_->scrollTo(rows.first().topLeft());
    }
}

bool CaptureEditor::eventFilter(QObject* watched, QEvent* event) {
    if (watched == table_->viewport() && event->type() == QEvent::Resize) {
        const int columns = model_->columnCount(), width = table_->viewport()->width();
        for (int i = 0; i < columns; ++i) {
            table_->setColumnWidth(i, i + 1 < columns ? width / columns : width - (columns - 1) * (width / columns));
        }
    }
    return QWidget::eventFilter(watched, event);
}

CapturePanel::CapturePanel(QWidget* parent) : QWidget(parent) {
    column_ = new QVBoxLayout(this);
    column_->setContentsMargins(0, 0, 0, 0);
    column_->setSpacing(0);
    header_ = new DockHeader(tr("Captured tensors"), this);
    file_ = new QPushButton(tr("From file…"), header_);
    file_->setToolTip(tr("Captured tensors, and q and k for scores, from a safetensors file"));
    setControlHeight(file_, 22);
    fileName_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, header_);
    fileName_->setElide(true);
    fileName_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    header_->addControl(fileName_);
    header_->addControl(file_);
    column_->addWidget(header_);
    connect(file_, &QPushButton::clicked, this, &CapturePanel::fileWanted);
}

CaptureEditor* CapturePanel::editor(const QString& name) const {
    const auto found = editors_.find(name);
    return found == editors_.end() ? nullptr : found->second;
}

void CapturePanel::setCaptures(const std::vector<MaskCapture>& captures, std::int64_t block, const QString& file) {
    std::set<QString> wanted;
    for (const MaskCapture& capture : captures) {
        wanted.insert(capture.name);
        CaptureEditor*& editor = editors_[capture.name];
        if (editor == nullptr) {
            editor = new CaptureEditor(capture.name, this);
            column_->addWidget(editor);
            connect(editor, &CaptureEditor::edited, this, &CapturePanel::edited);
            connect(editor, &CaptureEditor::fromRunWanted, this, &CapturePanel::fromRunWanted);
        }
        editor->setCapture(capture, block);
    }
    for (auto it = editors_.begin(); it != editors_.end();) {
        if (wanted.contains(it->first)) {
            ++it;
        } else {
            it->second->deleteLater();
            it->second->hide();
            it = editors_.erase(it);
        }
    }
    fileName_->setText(QFileInfo(file).fileName());
    fileName_->setToolTip(file);
}

void CapturePanel::setPointed(std::int64_t q, std::int64_t kv) {
    for (const auto& [name, editor] : editors_) {
        editor->setPointed(q, kv);
    }
}

} // namespace vitrine::ui
