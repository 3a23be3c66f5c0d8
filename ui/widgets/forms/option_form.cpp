// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/forms/option_form.h"

#include <QAbstractItemView>
#include <QCheckBox>
#include <QComboBox>
#include <QCompleter>
#include <QEvent>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QUndoCommand>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/models/common/format.h"
#include "ui/widgets/base/icons.h"
#include "ui/widgets/base/style.h"

namespace vitrine::ui {

namespace {

using engine::OptionSpec;
using engine::OptionType;

constexpr int kLabelWidth = 104;
constexpr int kMostLines = 5;    ///< of a list of texts; the rest is scrolled
constexpr int kPopupWidth = 300; ///< a list of models is wider than its field

class TextEdit final : public QUndoCommand {
public:
    TextEdit(ExperimentForm* form, const QString& key, const QString& before, const QString& after)
        : QUndoCommand(ExperimentForm::label(key)), form_(form), key_(key), before_(before), after_(after) {}
    void undo() override { form_->setText(key_, before_); }
    void redo() override { form_->setText(key_, after_); }
    int id() const override { return 1; }
    bool mergeWith(const QUndoCommand* other) override {
        const auto* next = static_cast<const TextEdit*>(other);
        if (next->key_ != key_ || next->form_ != form_) {
            return false; // typing in one field is one step
        }
        after_ = next->after_;
        return true;
    }

private:
    ExperimentForm* form_;
    QString key_, before_, after_;
};

bool undoKey(QEvent* event, bool& redo) {
    if (event->type() != QEvent::KeyPress && event->type() != QEvent::ShortcutOverride) {
        return false;
    }
    const auto* key = static_cast<QKeyEvent*>(event);
    redo = key->matches(QKeySequence::Redo);
    return redo || key->matches(QKeySequence::Undo);
}

} // namespace

OptionForm::OptionForm(ExperimentForm* form, QStringList skip, QWidget* parent)
    : QScrollArea(parent), form_(form), skip_(std::move(skip)) {
    setFrameShape(QFrame::NoFrame);
    setWidgetResizable(true);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setAccessibleName(tr("Settings of the run"));
    connect(form, &ExperimentForm::reloaded, this, &OptionForm::rebuild);
    connect(form, &ExperimentForm::changedText, this, &OptionForm::refresh);
    rebuild();
}

void OptionForm::rebuild() {
    rows_.clear();
    folds_.clear();
    auto* page = new Surface(Surface::Fill::Panel, Surface::None);
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(12, 8, 12, 12);
    column->setSpacing(0);
    const OptionLayout& layout = layoutOfForm();
    const auto groups = groupsOf(layout);
    for (const auto& [group, specs] : groups) {
        const bool folds = !layout.basic.empty() && !group.isEmpty();
        auto* rows = static_cast<QFormLayout*>(addGroup(page, group, folds, group == groups.front().first));
        for (const OptionSpec* spec : specs) {
            rows->addRow(makeRow(*spec, page));
            rows_[textOf(spec->key)].group = folds ? group : QString();
        }
    }
    auto* reset = new QPushButton(tr("Reset all fields"), page);
    column->addSpacing(12);
    column->addWidget(reset, 0, Qt::AlignLeft);
    column->addStretch(1);
    connect(reset, &QPushButton::clicked, this, [this] {
        stack_.beginMacro(tr("Reset all fields"));
        for (const auto& [key, row] : std::map<QString, Row>(rows_)) {
            if (key != QLatin1String("model") && form_->changed(key)) {
                edit(key, ExperimentForm::defaultText(key));
            }
        }
        stack_.endMacro();
    });
    // The old page may hold the button whose click brought us here.
    if (QWidget* before = takeWidget()) {
        before->hide();
        before->deleteLater();
    }
    setWidget(page);
    for (const auto& [key, row] : rows_) {
        refresh(key);
    }
    for (const auto& [group, fold] : folds_) {
        showFold(group);
    }
}

QWidget* OptionForm::makeRow(const OptionSpec& spec, QWidget* parent) {
    const QString key = textOf(spec.key);
    auto* whole = new QWidget(parent);
    auto* column = new QVBoxLayout(whole);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(2);
    auto* line = new QHBoxLayout;
    line->setSpacing(4);
    auto* label = new TextLabel(ExperimentForm::label(key), TypeRole::Table, TextColor::Text2, false, whole);
    label->setElide(true);
    label->setFixedWidth(kLabelWidth);
    label->setToolTip(textOf(spec.help));
    Row row;
    row.dot = new QPushButton(QStringLiteral("•"), whole);
    row.dot->setFlat(true);
    row.dot->setFixedSize(14, 22);
    row.dot->setFocusPolicy(Qt::NoFocus);
    row.dot->setToolTip(tr("Changed. Click for the default: %1")
                            .arg(spec.defaultText.empty() ? tr("unset") : textOf(spec.defaultText)));
    row.dot->setAccessibleName(tr("Reset %1").arg(ExperimentForm::label(key)));
    QSizePolicy kept = row.dot->sizePolicy();
    kept.setRetainSizeWhenHidden(true);
    row.dot->setSizePolicy(kept);
    row.editor = makeEditor(spec, whole);
    row.editor->setAccessibleName(ExperimentForm::label(key));
    row.editor->setAccessibleDescription(textOf(spec.help));
    row.editor->setToolTip(textOf(spec.help));
    row.editor->setObjectName(QStringLiteral("option.") + key);
    row.editor->installEventFilter(this);
    row.editor->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    row.editor->setMinimumWidth(56); // else the longest choice decides how wide the form is
    line->addWidget(label);
    line->addWidget(row.dot);
    line->addWidget(row.editor, 1);
    const bool number = spec.type == OptionType::Integer || spec.type == OptionType::Real;
    if (number && !spec.unit.empty()) {
        auto* unit = new TextLabel(textOf(spec.unit), TypeRole::Axis, TextColor::Text3, false, whole);
        line->addWidget(unit);
    }
    if (spec.type == OptionType::Path || choices_.contains(key)) {
        auto* browse = iconButton(QStringLiteral("more"), tr("Choose a file or folder"), whole);
        line->addWidget(browse);
        connect(browse, &QPushButton::clicked, this, [this, key] { emit chooseWanted(key); });
    }
    row.error = new TextLabel({}, TypeRole::Axis, TextColor::Bad, false, whole);
    row.error->setWordWrap(true);
    row.error->hide();
    column->addLayout(line);
    column->addWidget(row.error);
    connect(row.dot, &QPushButton::clicked, this, [this, key] { edit(key, ExperimentForm::defaultText(key)); });
    rows_[key] = row;
    return whole;
}

QWidget* OptionForm::makeEditor(const OptionSpec& spec, QWidget* parent) {
    const QString key = textOf(spec.key);
    if (spec.type == OptionType::Bool) {
        auto* box = new QCheckBox(parent);
        connect(box, &QCheckBox::toggled, this,
                [this, key](bool on) { edit(key, on ? QStringLiteral("true") : QStringLiteral("false")); });
        return box;
    }
    if (spec.type == OptionType::Choice || choices_.contains(key)) {
        auto* box = new QComboBox(parent);
        box->setMinimumContentsLength(6);
        box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
        if (spec.type == OptionType::Choice) {
            for (const auto& [value, words] : ExperimentForm::choices(key)) {
                box->addItem(words, value);
            }
            connect(box, &QComboBox::currentIndexChanged, this,
                    [this, key, box] { edit(key, box->currentData().toString()); });
        } else {
            box->setEditable(true);
            box->setInsertPolicy(QComboBox::NoInsert);
            box->lineEdit()->setPlaceholderText(choices_[key].hint);
            box->lineEdit()->installEventFilter(this);
            box->addItems(choices_[key].texts);
            box->setCurrentIndex(-1);
            box->view()->setTextElideMode(Qt::ElideLeft);
            box->view()->setMinimumWidth(kPopupWidth);
            connect(box, &QComboBox::editTextChanged, box->lineEdit(), &QLineEdit::setToolTip);
            connect(box, &QComboBox::editTextChanged, this, [this, key](const QString& text) { edit(key, text); });
        }
        return box;
    }
    if (spec.type == OptionType::TextList) {
        return makeList(spec, parent);
    }
    auto* field = new QLineEdit(parent);
    field->setPlaceholderText(spec.defaultText.empty() ? tr("unset") : textOf(spec.defaultText));
    connect(field, &QLineEdit::textEdited, this, [this, key, field](const QString& text) {
        typing_ = field;
        edit(key, text);
        typing_ = nullptr;
    });
    // What was typed may be an unfinished number that means the default ("0."); it is tidied up when one leaves.
    connect(field, &QLineEdit::editingFinished, this, [this, key] { refresh(key); });
    return field;
}

QWidget* OptionForm::makeList(const OptionSpec& spec, QWidget* parent) {
    const QString key = textOf(spec.key);
    auto* field = new QPlainTextEdit(parent);
    field->setTabChangesFocus(true);
    field->setLineWrapMode(QPlainTextEdit::NoWrap);
    field->setPlaceholderText(tr("unset; one on each line"));
    const auto fit = [field] {
        const int lines = std::clamp(field->blockCount(), 1, kMostLines);
        field->setVerticalScrollBarPolicy(field->blockCount() > kMostLines ? Qt::ScrollBarAsNeeded
                                                                           : Qt::ScrollBarAlwaysOff);
        const int frame = 2 * (field->frameWidth() + static_cast<int>(field->document()->documentMargin()));
        field->setFixedHeight(lines * field->fontMetrics().lineSpacing() + frame);
    };
    fit();
    connect(field, &QPlainTextEdit::textChanged, this, [this, key, field, fit] {
        fit();
        typing_ = field;
        edit(key, field->toPlainText());
        typing_ = nullptr;
    });
    return field;
}

void OptionForm::setChoices(const QString& key, const QStringList& choices, const QString& hint) {
    choices_[key] = {choices, hint};
    const auto found = rows_.find(key);
    auto* box = found != rows_.end() ? qobject_cast<QComboBox*>(found->second.editor) : nullptr;
    if (box == nullptr) {
        rebuild();
        return;
    }
    filling_ = true;
    box->clear();
    box->addItems(choices);
    box->setEditText(form_->text(key));
    filling_ = false;
}

void OptionForm::edit(const QString& key, const QString& text) {
    if (filling_) {
        return;
    }
    if (text != form_->text(key)) {
        stack_.push(new TextEdit(form_, key, form_->text(key), text));
    }
}

void OptionForm::refresh(const QString& key) {
    const auto found = rows_.find(key);
    if (found == rows_.end()) {
        return;
    }
    Row& row = found->second;
    const QString text = form_->text(key);
    filling_ = true;
    if (auto* check = qobject_cast<QCheckBox*>(row.editor)) {
        check->setChecked(text == QLatin1String("true"));
    } else if (auto* box = qobject_cast<QComboBox*>(row.editor)) {
        if (box->isEditable()) {
            if (box->currentText() != text) {
                box->setEditText(text);
            }
        } else {
            box->setCurrentIndex(std::max(0, box->findData(text)));
        }
    } else if (auto* list = qobject_cast<QPlainTextEdit*>(row.editor)) {
        if (list != typing_ && list->toPlainText() != text) {
            list->setPlainText(text);
        }
    } else if (auto* field = qobject_cast<QLineEdit*>(row.editor);
               field != nullptr && field != typing_ && field->text() != text) {
        // An emptied field shows its default as a placeholder, not as text that comes back while one types.
        if (!(field->text().isEmpty() && field->hasFocus())) {
            field->setText(text);
        }
    }
    filling_ = false;
    row.dot->setVisible(form_->changed(key));
    showFold(row.group);
    showError(row, form_->error(key));
}

void OptionForm::showError(Row& row, const QString& error) {
    row.error->setText(error);
    row.error->setVisible(!error.isEmpty());
    setAlarming(row.editor, !error.isEmpty());
    row.editor->update();
}

void OptionForm::setError(const QString& key, const QString& error) {
    const auto found = rows_.find(key);
    if (found != rows_.end()) {
        showError(found->second, error);
        setFolded(found->second.group, false);
        ensureWidgetVisible(found->second.editor);
    }
}

QWidget* OptionForm::editor(const QString& key) const {
    const auto found = rows_.find(key);
    return found != rows_.end() ? found->second.editor : nullptr;
}

QString OptionForm::errorLine(const QString& key) const {
    const auto found = rows_.find(key);
    return found != rows_.end() && !found->second.error->isHidden() ? found->second.error->text() : QString();
}

bool OptionForm::dotShown(const QString& key) const {
    const auto found = rows_.find(key);
    return found != rows_.end() && !found->second.dot->isHidden();
}

bool OptionForm::eventFilter(QObject* watched, QEvent* event) {
    bool redo = false;
    if (undoKey(event, redo)) {
        if (event->type() == QEvent::KeyPress) {
            redo ? stack_.redo() : stack_.undo();
        }
        event->accept();
        return true;
    }
    if (event->type() == QEvent::Wheel && qobject_cast<QComboBox*>(watched) != nullptr) {
        event->ignore(); // scrolling the form must not change it
        return true;
    }
    return QScrollArea::eventFilter(watched, event);
}

} // namespace vitrine::ui
