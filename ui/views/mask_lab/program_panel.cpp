// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/mask_lab/program_panel.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QPushButton>
#include <QStackedWidget>
#include <QVBoxLayout>

#include "base/error.h"
#include "ui/models/common/format.h"
#include "ui/widgets/base/icons.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/forms/code_edit.h"

namespace vitrine::ui {

namespace {

QPushButton* menuButton(const QString& text, const QString& tip, QMenu* menu, QWidget* parent) {
    auto* button = new QPushButton(text, parent);
    button->setMenu(menu);
    button->setToolTip(tip);
    setControlHeight(button, 22);
    return button;
}

} // namespace

ProgramPanel::ProgramPanel(QWidget* parent) : QWidget(parent) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    auto* header = new DockHeader(tr("Program"), this);
    catalogueMenu_ = new QMenu(this);
    layersMenu_ = new QMenu(this);
    catalogueMenu_->setToolTipsVisible(true);
    layers_ = menuButton(tr("Layers"), tr("The mask of a layer of a model"), layersMenu_, header);
    catalogue_ = menuButton(tr("Catalogue"), tr("Ready programs"), catalogueMenu_, header);
    header->addControl(layers_);
    header->addControl(catalogue_);
    column->addWidget(header);

    auto* choices = new Surface(Surface::Fill::Panel, Surface::Bottom, this);
    choices->setFixedHeight(31);
    auto* row = new QHBoxLayout(choices);
    row->setContentsMargins(12, 0, 12, 1);
    row->setSpacing(6);
    const auto choice = [&](const QString& name, const QString& tip) {
        row->addWidget(new TextLabel(name, TypeRole::Table, TextColor::Text3, false, choices));
        auto* combo = new QComboBox(choices);
        combo->setEditable(true);
        combo->setInsertPolicy(QComboBox::NoInsert);
        combo->setAccessibleName(tip);
        combo->setToolTip(tip);
        combo->setMinimumWidth(80);
        setControlHeight(combo, 22);
        row->addWidget(combo, 1);
        connect(combo, &QComboBox::activated, this, &ProgramPanel::announceChoices);
        connect(combo->lineEdit(), &QLineEdit::editingFinished, this, &ProgramPanel::announceChoices);
        return combo;
    };
    mask_ = choice(tr("mask"), tr("The mask: a function of the program, or an expression that makes one"));
    score_ = choice(tr("score"), tr("The score: a function of the program, or an expression that makes one"));
    column->addWidget(choices);

    stack_ = new QStackedWidget(this);
    for (CodeEdit*& editor : editors_) {
        editor = new CodeEdit(stack_);
        stack_->addWidget(editor);
        connect(editor, &CodeEdit::edited, this, &ProgramPanel::textEdited);
    }
    column->addWidget(stack_, 1);
    auto* strip = new Surface(Surface::Fill::Panel, Surface::Top | Surface::Bottom, this);
    strip->setMinimumHeight(27);
    auto* line = new QHBoxLayout(strip);
    line->setContentsMargins(12, 4, 8, 4);
    line->setSpacing(6);
    statusIcon_ = new QLabel(strip);
    statusIcon_->setFixedSize(14, 14);
    status_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, strip);
    status_->setWordWrap(true); // an error is said in full
    help_ = new QPushButton(strip);
    setControlHeight(help_, 20);
    help_->hide();
    line->addWidget(statusIcon_, 0, Qt::AlignTop);
    line->addWidget(status_, 1);
    line->addWidget(help_, 0, Qt::AlignTop);
    column->addWidget(strip);

    connect(catalogueMenu_, &QMenu::aboutToShow, this, &ProgramPanel::fillCatalogue);
    connect(layersMenu_, &QMenu::aboutToShow, this, &ProgramPanel::fillLayers);
    connect(help_, &QPushButton::clicked, this, [this] {
        if (undefined_.isEmpty()) {
            editor()->showProblem();
        } else {
            emit captureWanted(undefined_);
        }
    });
}

void ProgramPanel::setSource(int side, const MaskSource& source) {
    editors_[static_cast<std::size_t>(side)]->setText(source.text);
}

void ProgramPanel::showSide(int side) {
    const bool focused = editor()->hasFocus();
    side_ = side;
    stack_->setCurrentIndex(side);
    if (focused) {
        editor()->setFocus();
    }
}

QString ProgramPanel::status() const {
    return status_->text();
}

void ProgramPanel::fillChoice(QComboBox* combo, const QStringList& offers, const std::string& asked,
                              const std::string& own) {
    if (combo->lineEdit()->hasFocus() && combo->lineEdit()->isModified()) {
        return; // somebody is typing
    }
    filling_ = true;
    QStringList items = offers;
    const QString shown = asked == kNoMod ? tr("none") : textOf(asked.empty() ? own : asked);
    if (!shown.isEmpty() && !items.contains(shown) && asked != kNoMod) {
        items << shown;
    }
    items << tr("none");
    combo->clear();
    combo->addItems(items);
    combo->setCurrentText(shown.isEmpty() ? tr("none") : shown);
    combo->lineEdit()->setCursorPosition(0);
    filling_ = false;
}

void ProgramPanel::announceChoices() {
    if (filling_) {
        return;
    }
    const auto expression = [this](const QComboBox* combo) {
        const QString text = combo->currentText().trimmed();
        return text.isEmpty() || text == tr("none") ? QString::fromLatin1(kNoMod) : text;
    };
    emit expressionsChosen(expression(mask_), expression(score_));
}

void ProgramPanel::setStudy(const MaskStudyPtr& study, const QString& error) {
    const auto say = [this](const QString& icon, const QColor& color, const QString& text, TextColor ink) {
        statusIcon_->setPixmap(iconPixmap(icon, 14, color, devicePixelRatioF()));
        status_->setText(text);
        status_->setToolTip(text);
        status_->setColor(ink);
    };
    undefined_.clear();
    help_->hide();
    if (!study) {
        statusIcon_->setPixmap({});
        status_->setText({});
        return;
    }
    // Colours and places are those of the text that was read; the editor may be ahead of it.
    const bool same = editor()->text() == study->source.text;
    if (!study->problem || !same) {
        editor()->setProblem(0, 0);
    }
    if (study->problem) {
        const MaskProblem& problem = *study->problem;
        if (same && problem.line > 0) {
            editor()->setProblem(problem.begin, problem.end);
        }
        say(QStringLiteral("warning"), themeTokens().bad,
            problem.line > 0 ? tr("Line %1: %2").arg(problem.line).arg(problem.what) : problem.what, TextColor::Bad);
        undefined_ = problem.undefined;
        help_->setVisible(same && problem.line > 0);
        help_->setText(undefined_.isEmpty() ? tr("Show") : tr("Give it values"));
        help_->setToolTip(undefined_.isEmpty() ? tr("Go to line %1").arg(problem.line)
                                               : tr("Make %1 a captured tensor that is edited below").arg(undefined_));
        return;
    }
    fillChoice(mask_, study->maskOffers, study->source.mask, study->maskName);
    fillChoice(score_, study->scoreOffers, study->source.score, study->scoreName);
    if (!error.isEmpty()) {
        say(QStringLiteral("warning"), themeTokens().bad, error, TextColor::Bad);
    } else if (!study->notes.isEmpty()) {
        say(QStringLiteral("check"), themeTokens().good,
            tr("Parsed in %1, %2")
                .arg(durationText(static_cast<base::TimeNs>(study->seconds * 1e9)),
                     study->notes.size() == 1 ? tr("1 note") : tr("%1 notes").arg(study->notes.size())),
            TextColor::Text2);
        status_->setToolTip(study->notes.join(QLatin1Char('\n')));
    } else {
        say(QStringLiteral("check"), themeTokens().good,
            tr("Parsed in %1, types checked, no errors")
                .arg(durationText(static_cast<base::TimeNs>(study->seconds * 1e9))),
            TextColor::Text2);
    }
}

void ProgramPanel::setModel(std::optional<MaskModel> model, const QString& why) {
    model_ = std::move(model);
    whyNoModel_ = why;
}

void ProgramPanel::fillCatalogue() {
    catalogueMenu_->clear();
    try {
        for (MaskChoice& choice : maskCatalogue(sizes_ ? sizes_() : MaskSizes())) {
            QString words = choice.explanation;
            words.remove(QLatin1Char('`'));
            // The line begins with the entry's name in its own words.
            constexpr qsizetype kLongest = 96;
            QAction* action =
                catalogueMenu_->addAction(words.size() > kLongest ? words.left(kLongest - 1) + QChar(0x2026) : words);
            action->setToolTip(choice.explanation);
            action->setObjectName(choice.name);
            connect(action, &QAction::triggered, this,
                    [this, source = std::move(choice.source)] { emit sourceChosen(source); });
        }
    } catch (const base::Error& error) {
        catalogueMenu_->addAction(QString::fromUtf8(error.what()))->setEnabled(false);
    }
}

void ProgramPanel::fillLayers() {
    layersMenu_->clear();
    if (!model_) {
        layersMenu_->addAction(whyNoModel_)->setEnabled(false);
    } else {
        layersMenu_->addSection(model_->name);
        for (const MaskLayer& layer : model_->layers) {
            connect(layersMenu_->addAction(layer.title), &QAction::triggered, this,
                    [this, index = layer.index] { emit layerChosen(index); });
        }
    }
    layersMenu_->addSeparator();
    connect(layersMenu_->addAction(tr("Another model folder…")), &QAction::triggered, this,
            &ProgramPanel::modelFolderWanted);
}

} // namespace vitrine::ui
