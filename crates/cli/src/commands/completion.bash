# Gives _ssdyno the words as they are typed, and bash the part of each answer behind what it has already.
_ssdyno_whole_words() {
    local line=${COMP_LINE:0:COMP_POINT} reply
    local -a COMP_WORDS
    read -ra COMP_WORDS <<< "$line"
    [[ $line == *[[:space:]] ]] && COMP_WORDS+=("")
    local COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    local cur=${COMP_WORDS[COMP_CWORD]} prev=""
    ((COMP_CWORD > 0)) && prev=${COMP_WORDS[COMP_CWORD - 1]}
    _ssdyno "$1" "$cur" "$prev"
    local head=""
    [[ $COMP_WORDBREAKS == *:* && $cur == *:* ]] && head=${cur%"${cur##*:}"}
    [[ $COMP_WORDBREAKS == *=* && $cur == *=* ]] && head=${cur%"${cur##*=}"}
    COMPREPLY=("${COMPREPLY[@]#"$head"}")
    # A key waits for its value.
    for reply in "${COMPREPLY[@]}"; do
        [[ $reply == *= ]] && compopt -o nospace 2> /dev/null
    done
}
