// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/mask_lab/mask_editor.h"

#include <QFileDialog>
#include <QScrollArea>
#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/models/common/format.h"
#include "ui/views/mask_lab/capture_panel.h"
#include "ui/views/mask_lab/heads_panel.h"
#include "ui/views/mask_lab/program_panel.h"
#include "ui/widgets/forms/code_edit.h"
#include "ui/widgets/forms/number_slider.h"

namespace vitrine::ui {

MaskEditor::MaskEditor(MaskLab* lab, QWidget* parent)
    : Surface(Surface::Fill::Panel, Surface::Right, parent), lab_(lab), modelJob_(this) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 1, 0);
    column->setSpacing(0);
    auto* halves = new QSplitter(Qt::Vertical, this);
    halves->setChildrenCollapsible(false);
    program_ = new ProgramPanel(halves);
    program_->setMinimumHeight(190);
    program_->setSizesOf([this] { return lab_->sizes(); });
    halves->addWidget(program_);
    halves->addWidget(buildParts(halves));
    halves->setStretchFactor(0, 0);
    halves->setStretchFactor(1, 1);
    halves->setSizes({312, 466});
    column->addWidget(halves);
    setMinimumWidth(260);
    connectProgram();
    connectParts();
}

/// Below the program, in a scroll area: parameters, captures and heads.
QWidget* MaskEditor::buildParts(QWidget* parent) {
    auto* scroll = new QScrollArea(parent);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setWidgetResizable(true);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    auto* content = new Surface(Surface::Fill::Panel, Surface::None, scroll);
    auto* parts = new QVBoxLayout(content);
    parts->setContentsMargins(0, 0, 0, 0);
    parts->setSpacing(0);
    parameterHead_ = new DockHeader(tr("Parameters"), content);
    parts->addWidget(parameterHead_);
    sliderColumn_ = new QVBoxLayout;
    sliderColumn_->setContentsMargins(0, 2, 0, 2);
    sliderColumn_->setSpacing(0);
    parts->addLayout(sliderColumn_);
    captures_ = new CapturePanel(content);
    parts->addWidget(captures_);
    heads_ = new HeadsPanel(content);
    parts->addWidget(heads_);
    parts->addStretch(1);
    scroll->setWidget(content);
    return scroll;
}

void MaskEditor::connectProgram() {
    connect(lab_, &MaskLab::sourceChanged, this,
            [this](int side) { program_->setSource(side, lab_->side(side).source); });
    connect(program_, &ProgramPanel::textEdited, this, [this] { lab_->setText(side_, program_->editor()->text()); });
    connect(program_, &ProgramPanel::expressionsChosen, this, &MaskEditor::takeExpressions);
    connect(program_, &ProgramPanel::sourceChosen, this,
            [this](const MaskSource& source) { lab_->setSource(side_, source); });
    connect(program_, &ProgramPanel::captureWanted, this, [this](const QString& name) {
        lab_->setCapture(side_, name.toStdString(), suggestedCapture(name.toStdString(), lab_->sizes()));
    });
    connect(program_, &ProgramPanel::modelFolderWanted, this, &MaskEditor::chooseModelFolder);
    connect(program_, &ProgramPanel::layerChosen, this, &MaskEditor::chooseLayer);
}

void MaskEditor::connectParts() {
    connect(captures_, &CapturePanel::edited, this, [this](const QString& name, const QString& line) {
        lab_->setCapture(side_, name.toStdString(), line.toStdString());
    });
    connect(captures_, &CapturePanel::fromRunWanted, this, &MaskEditor::fromRunWanted);
    connect(captures_, &CapturePanel::fileWanted, this, &MaskEditor::chooseTensors);
    connect(heads_, &HeadsPanel::planeChosen, this, [this](qint64 batch, qint64 head) {
        lab_->setPlane(batch, head);
        showSizes();
    });
    connect(heads_, &HeadsPanel::sizesChosen, lab_, &MaskLab::setSizes);
    connect(heads_, &HeadsPanel::readoutChanged, this, &MaskEditor::readoutChanged);
}

void MaskEditor::setSide(int side) {
    side_ = side;
    program_->showSide(side);
}

bool MaskEditor::showStudy() {
    const MaskLab::Side& side = lab_->side(side_);
    program_->setStudy(side.study, side.error);
    if (!side.study || side.study->problem) {
        return false;
    }
    showSliders(side.study->numbers);
    captures_->setCaptures(side.study->captures, lab_->sizes().block, textOf(side.source.tensorsFile));
    return true;
}

void MaskEditor::showSliders(const std::vector<MaskNumber>& numbers) {
    std::map<QString, NumberSlider*> kept;
    int width = 0;
    for (const MaskNumber& number : numbers) {
        auto found = sliders_.find(number.name);
        NumberSlider* slider = found == sliders_.end() ? nullptr : found->second;
        if (slider == nullptr || slider->whole() != number.whole) {
            slider = new NumberSlider(number.name, number.whole, this);
            connect(slider, &NumberSlider::moved, this,
                    [this, name = number.name.toStdString()](double value) { lab_->setParameter(side_, name, value); });
            sliderColumn_->addWidget(slider);
        } else {
            sliders_.erase(found);
        }
        slider->setValue(number.value, number.low, number.high);
        slider->show();
        width = std::max(width, slider->nameHint());
        kept[number.name] = slider;
    }
    for (const auto& [name, slider] : sliders_) {
        slider->hide();
        slider->deleteLater();
    }
    sliders_ = std::move(kept);
    for (const auto& [name, slider] : sliders_) {
        slider->setNameWidth(width);
    }
    parameterHead_->setVisible(!sliders_.empty());
}

void MaskEditor::showMap() {
    heads_->setMap(lab_->side(side_).map.get());
}

void MaskEditor::showSizes() {
    heads_->setSizes(lab_->sizes(), lab_->batch(), lab_->head());
}

void MaskEditor::setPointed(std::int64_t query, std::int64_t key) {
    captures_->setPointed(query, key);
}

void MaskEditor::setTintedLine(int line, bool blocks) {
    program_->editor()->setTintedLine(line, blocks);
}

/// What the text would choose by itself stays its own choice.
void MaskEditor::takeExpressions(const QString& mask, const QString& score) {
    const MaskStudyPtr& study = lab_->side(side_).study;
    const MaskSource& source = lab_->side(side_).source;
    const auto kept = [&study](const std::string& asked, const std::string& own, const QString& chosen) {
        const std::string now = chosen.toStdString();
        return study && asked.empty() && (now == own || (own.empty() && now == kNoMod)) ? std::string() : now;
    };
    MaskSource chosen = source;
    chosen.mask = kept(source.mask, study ? study->maskName : std::string(), mask);
    chosen.score = kept(source.score, study ? study->scoreName : std::string(), score);
    const MaskSource whole = withCatalogueText(chosen);
    if (whole.text == source.text) {
        lab_->setExpressions(side_, chosen.mask, chosen.score);
    } else {
        lab_->setSource(side_, whole);
    }
}

void MaskEditor::readModel(const std::string& name, const std::map<std::string, std::string>& overrides, bool ofRun,
                           std::int64_t tokens) {
    modelName_ = name;
    modelOverrides_ = overrides;
    if (name.empty()) {
        program_->setModel(std::nullopt, tr("Run A names no model"));
        return;
    }
    modelJob_.start(
        [name, overrides]() -> std::pair<std::optional<MaskModel>, QString> {
            try {
                return {maskModel(name, overrides), QString()};
            } catch (const std::exception& error) {
                return {std::nullopt, QString::fromUtf8(error.what())};
            }
        },
        [this, ofRun, tokens](std::pair<std::optional<MaskModel>, QString> found) {
            model_ = found.first;
            program_->setModel(std::move(found.first), found.second);
            const MaskSource& shown = lab_->side(side_).source;
            const bool untouched = shown == exampleSource(lab_->sizes().keys) || isLayerOfAModel(shown);
            if (ofRun && untouched && model_) {
                if (tokens > 0) {
                    MaskSizes sizes = lab_->sizes();
                    sizes.queries = sizes.keys = tokens;
                    lab_->setSizes(sizes);
                }
                const auto slides = std::ranges::find_if(model_->layers, [](const MaskLayer& layer) {
                    return layer.title.contains(QLatin1String("sliding"));
                });
                chooseLayer(slides == model_->layers.end() ? 0 : slides - model_->layers.begin());
            }
        });
}

bool MaskEditor::chooseLayer(std::int64_t layer) {
    if (!model_ || layer < 0 || layer >= static_cast<std::int64_t>(model_->layers.size())) {
        return false;
    }
    MaskSizes sizes = lab_->sizes();
    sizes.heads = model_->heads.heads;
    sizes.kvHeads = model_->heads.kvHeads;
    sizes.headDim = model_->heads.headDim;
    lab_->setSizes(sizes);
    lab_->setSource(side_, model_->layers[static_cast<std::size_t>(layer)].source);
    return true;
}

void MaskEditor::chooseModelFolder() {
    const QString path = QFileDialog::getExistingDirectory(this, tr("Choose a model folder"));
    if (!path.isEmpty()) {
        readModel(path.toStdString(), {});
    }
}

void MaskEditor::chooseTensors() {
    const QString path = QFileDialog::getOpenFileName(this, tr("Captured tensors"), QString(),
                                                      tr("safetensors files (*.safetensors);;All files (*)"));
    if (!path.isEmpty()) {
        lab_->setTensorsFile(side_, path.toStdString());
    }
}

std::vector<NumberSlider*> MaskEditor::sliders() const {
    std::vector<NumberSlider*> all;
    for (const auto& [name, slider] : sliders_) {
        all.push_back(slider);
    }
    return all;
}

QList<QWidget*> MaskEditor::focusOrder() const {
    QList<QWidget*> parts = {program_};
    for (int i = 0; i < sliderColumn_->count(); ++i) {
        parts << sliderColumn_->itemAt(i)->widget();
    }
    return parts << captures_ << heads_;
}

} // namespace vitrine::ui
