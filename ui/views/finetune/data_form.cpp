// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/finetune/data_form.h"

#include <QCheckBox>
#include <QComboBox>
#include <QFileInfo>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSignalBlocker>
#include <QVBoxLayout>

#include "ui/models/common/format.h"
#include "ui/models/finetune/data_text.h"
#include "ui/widgets/base/style.h"

namespace vitrine::ui {

namespace {

constexpr int kDataFormWidth = 300, kNameWidth = 88, kRawHeight = 112;

QString percentOf(const QString& share) {
    return QObject::tr("%1 %").arg(QString::number(share.toDouble() * 100, 'g', 6));
}

} // namespace

DataForm::DataForm(ExperimentForm* form, QWidget* parent) : QWidget(parent), form_(form) {
    setFixedWidth(kDataFormWidth);
    auto* whole = new QVBoxLayout(this);
    whole->setContentsMargins(0, 0, 0, 0);
    whole->setSpacing(0);
    auto* scroll = new QScrollArea(this);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setWidgetResizable(true);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    fields_ = new Surface(Surface::Fill::Panel, Surface::Right, scroll);
    column_ = new QVBoxLayout(fields_);
    column_->setContentsMargins(12, 4, 12, 4);
    column_->setSpacing(4);
    buildGroups();
    column_->addStretch(1);
    scroll->setWidget(fields_);
    whole->addWidget(scroll, 1);
    buildRawLine();
    whole->addWidget(raw_);
    connect(form_, &ExperimentForm::changedText, this, &DataForm::takeForm);
    connect(form_, &ExperimentForm::reloaded, this, &DataForm::takeForm);
    takeForm();
    setData(nullptr);
}

QVBoxLayout* DataForm::addGroup(const QString& title, TextLabel** note) {
    if (column_->count() > 0) {
        column_->addSpacing(3);
        auto* rule = new Surface(Surface::Fill::Panel, Surface::Top, fields_);
        rule->setFixedHeight(1);
        column_->addWidget(rule);
    }
    auto* row = new QHBoxLayout;
    row->setContentsMargins(0, 4, 0, 2);
    row->addWidget(new TextLabel(title, TypeRole::Table, TextColor::Text1, true, fields_));
    row->addStretch(1);
    if (note != nullptr) {
        *note = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, fields_);
        row->addWidget(*note);
    }
    column_->addLayout(row);
    return column_;
}

QWidget* DataForm::addRow(const QString& name, QWidget* editor, TextLabel* note, const QString& key) {
    auto* line = new QWidget(fields_);
    auto* row = new QHBoxLayout(line);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(6);
    auto* named = new QWidget(line);
    named->setFixedWidth(kNameWidth);
    auto* words = new QHBoxLayout(named);
    words->setContentsMargins(0, 0, 0, 0);
    words->setSpacing(6);
    words->addWidget(new TextLabel(name, TypeRole::Table, TextColor::Text2, false, named));
    if (!key.isEmpty()) {
        dots_[key] = new TextLabel(QStringLiteral("●"), TypeRole::Axis, TextColor::Accent, false, named);
        dots_[key]->setToolTip(tr("Differs from the default"));
        words->addWidget(dots_[key]);
    }
    words->addStretch(1);
    row->addWidget(named);
    row->addWidget(editor, 1);
    editor->setMinimumWidth(60);
    if (!name.isEmpty()) {
        editor->setAccessibleName(name);
    }
    if (note != nullptr) {
        row->addWidget(note);
    }
    column_->addWidget(line);
    return line;
}

QLineEdit* DataForm::textField(const QString& key) {
    auto* field = new QLineEdit(fields_);
    connect(field, &QLineEdit::editingFinished, this, [this, field, key] {
        if (filling_) {
            return;
        }
        QString text = field->text().trimmed();
        if (key == QLatin1String("validation")) {
            const bool percent = text.endsWith(QLatin1Char('%'));
            text = percent ? QString::number(text.chopped(1).trimmed().toDouble() / 100, 'g', 6) : text;
        } else if (key != QLatin1String("data")) {
            text.remove(QLatin1Char(','));
        }
        if (text != form_->text(key)) {
            text.isEmpty() ? form_->reset(key) : form_->setText(key, text);
        }
    });
    return field;
}

QComboBox* DataForm::choiceField(const QString& key, const std::vector<std::pair<QString, QString>>& choices) {
    auto* field = new QComboBox(fields_);
    for (const auto& [text, value] : choices) {
        field->addItem(text, value);
    }
    field->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    connect(field, &QComboBox::currentIndexChanged, this, [this, field, key] {
        if (!filling_) {
            form_->setText(key, field->currentData().toString());
        }
    });
    return field;
}

void DataForm::buildGroups() {
    const auto note = [this] { return new TextLabel({}, TypeRole::Table, TextColor::Text3, false, fields_); };
    addGroup(tr("File"), &fileNote_);
    file_ = textField(QStringLiteral("data"));
    file_->setPlaceholderText(tr("A .jsonl file"));
    auto* open = new QPushButton(QStringLiteral("…"), fields_);
    open->setToolTip(tr("Choose a file"));
    open->setFixedWidth(26);
    connect(open, &QPushButton::clicked, this, &DataForm::openWanted);
    auto* box = new QWidget(fields_);
    auto* row = new QHBoxLayout(box);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(4);
    row->addWidget(file_, 1);
    row->addWidget(open);
    file_->setAccessibleName(tr("Data file"));
    addRow(tr("Data file"), box, nullptr, QStringLiteral("data"));
    formatNote_ = note();
    addRow(tr("Format"), formatNote_);
    template_ = choiceField(QStringLiteral("chat_format"), {{tr("the model’s own"), QStringLiteral("auto")},
                                                            {QStringLiteral("harmony"), QStringLiteral("harmony")},
                                                            {QStringLiteral("chatml"), QStringLiteral("chatml")},
                                                            {QStringLiteral("llama3"), QStringLiteral("llama3")},
                                                            {QStringLiteral("mistral"), QStringLiteral("mistral")},
                                                            {QStringLiteral("gemma"), QStringLiteral("gemma")}});
    addRow(tr("Template"), template_, nullptr, QStringLiteral("chat_format"));
    templateNote_ = note();
    addRow({}, templateNote_);
    addGroup(tr("Loss"), nullptr);
    addRow(tr("Train on"), new TextLabel(tr("assistant only"), TypeRole::Table, TextColor::Text1, false, fields_));
    endNote_ = note();
    addRow(tr("End of turn"), endNote_);
    addGroup(tr("Sequences"), nullptr);
    length_ = textField(QStringLiteral("sequence_length"));
    addRow(tr("Length"), length_, new TextLabel(tr("tokens"), TypeRole::Table, TextColor::Text3, false, fields_),
           QStringLiteral("sequence_length"));
    longRows_ = choiceField(QStringLiteral("long_rows"), {{tr("cut the end"), QStringLiteral("cut")},
                                                          {tr("keep the end"), QStringLiteral("keep-end")},
                                                          {tr("skip"), QStringLiteral("skip")}});
    longNote_ = note();
    addRow(tr("Long rows"), longRows_, longNote_, QStringLiteral("long_rows"));
    exceptions_ = note();
    exceptionRow_ = addRow({}, exceptions_);
    pack_ = new QCheckBox(tr("packing"), fields_);
    connect(pack_, &QCheckBox::toggled, this, [this](bool on) {
        if (!filling_) {
            form_->setText(QStringLiteral("pack"), on ? QStringLiteral("true") : QStringLiteral("false"));
        }
    });
    packNote_ = note();
    addRow({}, pack_, packNote_);
    addRow(tr("Rows see"), new TextLabel(tr("themselves only"), TypeRole::Table, TextColor::Text1, false, fields_));
    duplicates_ = choiceField(QStringLiteral("duplicates"), {{tr("keep the first"), QStringLiteral("leave-out")},
                                                             {tr("keep all"), QStringLiteral("keep")}});
    duplicateNote_ = note();
    addRow(tr("Duplicates"), duplicates_, duplicateNote_, QStringLiteral("duplicates"));
    addGroup(tr("Split"), nullptr);
    validation_ = textField(QStringLiteral("validation"));
    validationNote_ = note();
    addRow(tr("Validation"), validation_, validationNote_, QStringLiteral("validation"));
    seed_ = textField(QStringLiteral("seed"));
    addRow(tr("Seed"), seed_, new TextLabel(tr("order, split"), TypeRole::Table, TextColor::Text3, false, fields_));
}

void DataForm::buildRawLine() {
    raw_ = new Surface(Surface::Fill::Panel, Surface::Top | Surface::Right, this);
    raw_->setFixedHeight(kRawHeight);
    auto* column = new QVBoxLayout(raw_);
    column->setContentsMargins(12, 5, 12, 8);
    column->setSpacing(4);
    rawTitle_ = new TextLabel({}, TypeRole::Table, TextColor::Text1, true, raw_);
    column->addWidget(rawTitle_);
    rawText_ = new QPlainTextEdit(raw_);
    rawText_->setReadOnly(true);
    rawText_->setFrameShape(QFrame::NoFrame);
    rawText_->setFont(Theme::instance().monoFont(TypeRole::Axis));
    rawText_->setWordWrapMode(QTextOption::WrapAnywhere);
    rawText_->setAccessibleName(tr("The line as it is in the file"));
    rawText_->setTabChangesFocus(true);
    rawText_->viewport()->setAutoFillBackground(false);
    column->addWidget(rawText_, 1);
    raw_->hide();
}

void DataForm::setRawLine(const QString& place, const QString& text) {
    raw_->setVisible(!text.isEmpty());
    rawTitle_->setText(tr("%1 as it is in the file").arg(place));
    rawText_->setPlainText(text);
}

void DataForm::takeForm() {
    filling_ = true;
    const auto value = [this](const char* key) { return form_->text(QString::fromLatin1(key)); };
    if (!file_->hasFocus() || file_->text() != value("data")) {
        file_->setText(value("data"));
        file_->setToolTip(value("data"));
    }
    bool known = false;
    const qlonglong length = value("sequence_length").toLongLong(&known);
    length_->setText(known ? countText(length) : value("sequence_length"));
    validation_->setText(percentOf(value("validation")));
    seed_->setText(value("seed"));
    pack_->setChecked(value("pack") != QLatin1String("false"));
    length_->setPlaceholderText(pack_->isChecked() ? tr("the model’s context") : tr("the longest row"));
    for (const auto& [field, key] :
         {std::pair{template_, "chat_format"}, {longRows_, "long_rows"}, {duplicates_, "duplicates"}}) {
        field->setCurrentIndex(std::max(0, field->findData(value(key))));
    }
    const QString exceptions = value("long_row_exceptions");
    const auto count = exceptions.isEmpty() ? 0 : exceptions.count(QLatin1Char('+')) + 1;
    exceptions_->setText(count == 1 ? tr("1 exception") : tr("%1 exceptions").arg(count));
    exceptions_->setToolTip(exceptions);
    exceptionRow_->setVisible(count > 0);
    for (const auto& [key, dot] : dots_) {
        dot->setVisible(form_->changed(key));
    }
    filling_ = false;
}

void DataForm::setData(const DataSetPtr& set) {
    const auto rows = [](std::int64_t count) {
        return count == 0 ? QString() : count == 1 ? tr("1 row") : tr("%1 rows").arg(countText(count));
    };
    if (!set) {
        for (TextLabel* label :
             {fileNote_, formatNote_, templateNote_, endNote_, longNote_, packNote_, duplicateNote_, validationNote_}) {
            label->setText({});
        }
        setRawLine({}, {});
        return;
    }
    const engine::DataSummary& s = set->summary;
    fileNote_->setText(tr("%1, %2").arg(rows(s.rows), bytesText(set->fileBytes)));
    formatNote_->setText(rowKindText(*set));
    templateNote_->setText(s.conversations == 0
                               ? QString()
                               : tr("adds %1 tokens to each row").arg(countText(s.templateTokens / s.conversations)));
    endNote_->setText(s.endAsked == 0              ? QString()
                      : s.endTrained == s.endAsked ? tr("trained in all rows")
                      : s.endTrained == 0
                          ? tr("trained in 0 of %1 rows: the model will not stop").arg(countText(s.endAsked))
                          : tr("trained in %1 of %2 rows").arg(countText(s.endTrained), countText(s.endAsked)));
    endNote_->setColor(s.endTrained == 0 ? TextColor::Bad : TextColor::Text3);
    longNote_->setText(rows(s.cutRows + s.tooLong));
    packNote_->setText(tr("%1 full").arg(shareText(s.fill())));
    duplicateNote_->setText(rows(s.duplicates));
    validationNote_->setText(rows(s.validationRows));
}

void DataForm::setReadOnly(bool on) {
    fields_->setEnabled(!on);
}

QList<QWidget*> DataForm::stops() const {
    return {file_, template_, length_, longRows_, pack_, duplicates_, validation_, seed_};
}

} // namespace vitrine::ui
